"""The catalogue: one file, one paper.

| file        | paper                       | fills            | reads           |
| ----------- | --------------------------- | ---------------- | --------------- |
| `pascal.py` | Bugliarello & Okazaki, 2020 | factor (or bias) | `parent_middle` |
"""
