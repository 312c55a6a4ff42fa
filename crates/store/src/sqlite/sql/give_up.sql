UPDATE partitions SET holder = NULL WHERE holder = ?1 AND partition = ?2 AND epoch = ?3
