SELECT partition, epoch FROM partitions WHERE holder = ?1 ORDER BY partition
