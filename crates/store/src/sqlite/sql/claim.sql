INSERT INTO partitions (partition, epoch, holder) VALUES (?1, 1, ?2)
ON CONFLICT (partition) DO UPDATE SET epoch = epoch + 1, holder = ?2
RETURNING epoch
