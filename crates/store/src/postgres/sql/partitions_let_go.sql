UPDATE partitions SET epoch = epoch + 1, holder = NULL
