SELECT partition FROM partitions WHERE partition = ANY ($1) ORDER BY partition FOR UPDATE
