-- The process that locks this row migrates; others wait here and then find the migration done.
SELECT program, format FROM mainspring_format FOR UPDATE
