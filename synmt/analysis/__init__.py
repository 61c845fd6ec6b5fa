"""What is found out about trained systems: where they differ, which trees they induce, how much syntax a word used."""
