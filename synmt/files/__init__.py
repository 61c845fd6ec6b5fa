"""Files: text read line by line, outputs that appear only when complete, locks, hashes, the cache
folder."""
