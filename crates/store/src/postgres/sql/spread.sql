SELECT partitions FROM spread
