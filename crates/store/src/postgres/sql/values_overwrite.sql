UPDATE frames SET "values" = $3 WHERE execution = $1 AND sequence = $2
