SELECT partitions FROM spread FOR UPDATE
