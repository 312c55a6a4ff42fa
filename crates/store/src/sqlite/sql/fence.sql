SELECT 1 FROM partitions WHERE partition = ?1 AND epoch = ?2
