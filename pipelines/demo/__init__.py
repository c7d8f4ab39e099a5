"""The demo: a year of flights leaves an Oracle database and arrives in Delta Lake while the airport
keeps working."""
