SELECT program, format FROM mainspring_format
