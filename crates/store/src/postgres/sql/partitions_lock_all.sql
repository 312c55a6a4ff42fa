SELECT partition FROM partitions ORDER BY partition FOR UPDATE
