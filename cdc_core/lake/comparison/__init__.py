"""Is a mirror equal to Oracle's rows as of one SCN? Small mirrors are compared in this process,
others by Spark."""
