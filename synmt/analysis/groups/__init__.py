"""Where does one system beat another? Scores for groups of test sentences."""
