/* Rows as columns: what Python and Arrow read without a call for each value. */
#ifndef LIBANNAL_TABLE_H
#define LIBANNAL_TABLE_H

#include <annal/annal.h>

#include "table.cdef"

#endif
