SELECT partition, holder FROM partitions JOIN nodes ON name = holder WHERE alive_until > ?1 ORDER BY partition
