SELECT execution FROM heads UNION SELECT execution FROM inbox
