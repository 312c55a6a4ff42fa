-- ?3 is the store's clock: what no living node holds is free.
INSERT INTO partitions (partition, epoch, holder) VALUES (?1, 1, ?2)
ON CONFLICT (partition) DO UPDATE SET epoch = epoch + 1, holder = ?2
WHERE holder IS NULL OR NOT EXISTS (SELECT 1 FROM nodes WHERE name = holder AND alive_until > ?3)
RETURNING epoch
