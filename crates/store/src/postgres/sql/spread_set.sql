-- Living nodes assume until the last of their leases has expired that they still own their partitions.
UPDATE spread SET partitions = $1, taken_from = greatest(taken_from, (SELECT coalesce(max(alive_until), 0) FROM nodes))
