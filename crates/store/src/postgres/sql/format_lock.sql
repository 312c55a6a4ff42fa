-- Whoever has this row migrates; others wait here and then find the work done.
SELECT program, format FROM mainspring_format FOR UPDATE
