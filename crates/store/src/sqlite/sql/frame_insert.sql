INSERT INTO frames (execution, sequence, frame, "values") VALUES (?1, ?2, ?3, ?4)
