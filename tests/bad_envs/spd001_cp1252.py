# SPD001 | line 2 | UTF-8
NAME = "déjà vu"
