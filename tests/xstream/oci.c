/* A stand-in for Oracle's client library: the functions that read an XStream outbound server, over LCRs in a file.
 *
 * OCIServerAttach takes the file's path where Oracle's takes a connect string. A line begins with its kind, and has fields between tabs;
 * texts are in hexadecimal digits, "-" is NULL. PATH.mark keeps the processed low watermark, PATH.fail the number of XStream calls after
 * which one fails, and the error's number; PATH.turn is locked by the process that is attached. Order of calls is checked as Oracle does: a call that runs ends before one detaches, chunks
 * are received before the next LCR. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

typedef uint8_t ub1; typedef uint16_t ub2; typedef uint32_t ub4; typedef uint64_t ub8; typedef int16_t sb2; typedef int32_t sb4;
enum { ERR = -1, OK = 0, MORE = -3123, LINE = 4 << 20, COLUMNS = 1100, POSITION = 64 };

typedef struct { ub1 *name; ub2 name_len, type, csid; ub8 flags; ub1 *value; ub4 size; } Col;
typedef struct { Col list[COLUMNS]; int count; } Cols;

static char path[4096];
static sb4 error_code;
static FILE *file;
static int attached, receiving, chunk_at, turn = -1;
static ub1 mark[POSITION], low[POSITION], above[POSITION];
static ub2 mark_len, low_len, above_len;
static struct {
  ub1 kind, *text[6], *position, *ddl, date[8]; ub2 len[6], position_len; ub4 ddl_len; ub8 flags; char scns[64];
  Cols old, new, chunks, attributes;
} lcr;

static int fail(sb4 code) { error_code = code; return ERR; }

static int below(const ub1 *a, ub2 na, const ub1 *b, ub2 nb) { /* a <= b */
  int c = memcmp(a, b, na < nb ? na : nb);
  return c < 0 || (c == 0 && na <= nb);
}

static ub4 unhex(const char *text, ub1 **out) {
  ub4 n = (ub4)strlen(text) / 2;
  *out = malloc(n + 1);
  for (ub4 i = 0; i < n; i++) { unsigned b; sscanf(text + 2 * i, "%2x", &b); (*out)[i] = (ub1)b; }
  (*out)[n] = 0;
  return n;
}

static FILE *beside(const char *end, const char *mode) {
  char name[4200];
  snprintf(name, sizeof name, "%s.%s", path, end);
  return fopen(name, mode);
}

static int injected(void) { /* counts down the calls until one fails */
  FILE *f = beside("fail", "r");
  int left, code;
  if (!f) return 0;
  int n = fscanf(f, "%d %d", &left, &code);
  fclose(f);
  if (n != 2) return 0;
  f = beside("fail", "w");
  if (left > 0) fprintf(f, "%d %d", left - 1, code);
  fclose(f);
  return left > 0 ? 0 : fail(code);
}

static void clear(Cols *cols) {
  for (int i = 0; i < cols->count; i++) { free(cols->list[i].name); free(cols->list[i].value); }
  cols->count = 0;
}

static void drop(void) {
  for (int i = 0; i < 6; i++) { free(lcr.text[i]); lcr.text[i] = 0; lcr.len[i] = 0; }
  free(lcr.position); lcr.position = 0; free(lcr.ddl); lcr.ddl = 0; lcr.ddl_len = 0;
  clear(&lcr.old); clear(&lcr.new); clear(&lcr.chunks); clear(&lcr.attributes);
}

static void add(Cols *cols, char **field) {
  Col *c = &cols->list[cols->count++];
  c->name_len = (ub2)unhex(field[1], &c->name);
  c->type = (ub2)atoi(field[2]); c->flags = strtoull(field[3], 0, 10); c->csid = (ub2)atoi(field[4]);
  c->value = 0; c->size = 0;
  if (strcmp(field[5], "-")) c->size = unhex(field[5], &c->value);
}

static char line[LINE];

static int next_lcr(void) { /* 1: one was read, 0: there is no more */
  char *field[16];
  while (1) {
    long at = ftell(file);
    if (!fgets(line, LINE, file)) { fseek(file, at, SEEK_SET); return 0; }
    int n = 0;
    for (char *p = strtok(line, "\t\n"); p && n < 16; p = strtok(0, "\t\n")) field[n++] = p;
    switch (field[0][0]) {
    case 'W': { ub1 *p; ub4 size = unhex(field[1], &p); memcpy(low, p, size); low_len = (ub2)size; free(p); break; }
    case 'H': {
      drop();
      lcr.kind = (ub1)atoi(field[1]);
      for (int i = 0; i < 6; i++) lcr.len[i] = strcmp(field[2 + i], "-") ? (ub2)unhex(field[2 + i], &lcr.text[i]) : 0;
      ub1 *date; unhex(field[8], &date); memcpy(lcr.date, date, 7); free(date);
      lcr.position_len = (ub2)unhex(field[9], &lcr.position);
      lcr.flags = strtoull(field[10], 0, 10);
      break;
    }
    case 'T': lcr.ddl_len = unhex(field[1], &lcr.ddl); break;
    case 'A': add(&lcr.attributes, field); break;
    case 'O': add(&lcr.old, field); break;
    case 'N': add(&lcr.new, field); break;
    case 'C': add(&lcr.chunks, field); break;
    case 'E': if (!below(lcr.position, lcr.position_len, above, above_len)) return 1;
    }
  }
}

/* --- environment, session, errors ------------------------------------------------------------------------------------------------- */

static int handle;
void OCIClientVersion(sb4 *a, sb4 *b, sb4 *c, sb4 *d, sb4 *e) { const char *v = getenv("STAND_IN_VERSION"); *a = v ? atoi(v) : 23; *b = 6; *c = *d = *e = 0; }
sb4 OCIEnvNlsCreate(void **env, ub4 mode, void *c, void *m, void *r, void *f, size_t x, void *u, ub2 cs, ub2 ncs) { *env = &handle; return OK; }
sb4 OCIHandleAlloc(void *parent, void **h, ub4 type, size_t x, void *u) { *h = &handle; return OK; }
sb4 OCIHandleFree(void *h, ub4 type) { return OK; }
sb4 OCIAttrSet(void *h, ub4 ht, void *v, ub4 size, ub4 attr, void *err) { return attr == 23 && !memcmp(v, "wrong", 5) ? fail(1017) : OK; }
sb4 OCIServerAttach(void *srv, void *err, const char *dsn, sb4 len, ub4 mode) {
  snprintf(path, sizeof path, "%.*s", len, dsn);
  file = fopen(path, "r");
  return file ? OK : fail(12541);
}
static void end_turn(void) { if (turn >= 0) close(turn); turn = -1; }
sb4 OCIServerDetach(void *srv, void *err, ub4 mode) { if (file) fclose(file); file = 0; attached = receiving = 0; end_turn(); return OK; }
sb4 OCISessionBegin(void *svc, void *err, void *usr, ub4 cred, ub4 mode) { return getenv("STAND_IN_GRACE") ? (error_code = 28002, 1) : OK; }
sb4 OCISessionEnd(void *svc, void *err, void *usr, ub4 mode) { return OK; }
sb4 OCIErrorGet(void *h, ub4 n, void *state, sb4 *code, char *text, ub4 size, ub4 type) { *code = error_code; snprintf(text, size, "ORA-%05d", error_code); return OK; }

/* --- values: a descriptor is a pointer to what the file has ------------------------------------------------------------------------- */

typedef struct __attribute__((packed)) { sb2 year; ub1 month, day, hour, minute, second; ub4 nanos; int8_t zone_hours, zone_minutes; } DateTime;
sb4 OCIDateTimeGetDate(void *e, void *err, DateTime *d, sb2 *y, ub1 *m, ub1 *day) { *y = d->year; *m = d->month; *day = d->day; return OK; }
sb4 OCIDateTimeGetTime(void *e, void *err, DateTime *d, ub1 *h, ub1 *m, ub1 *s, ub4 *f) { *h = d->hour; *m = d->minute; *s = d->second; *f = d->nanos; return OK; }
sb4 OCIDateTimeGetTimeZoneOffset(void *e, void *err, DateTime *d, int8_t *h, int8_t *m) { *h = d->zone_hours; *m = d->zone_minutes; return OK; }
sb4 OCIIntervalGetDaySecond(void *e, void *err, sb4 *d, sb4 *h, sb4 *m, sb4 *s, sb4 *f, sb4 *i) { *d = i[0]; *h = i[1]; *m = i[2]; *s = i[3]; *f = i[4]; return OK; }
sb4 OCIIntervalGetYearMonth(void *e, void *err, sb4 *y, sb4 *m, sb4 *i) { *y = i[0]; *m = i[1]; return OK; }
sb4 OCIRowidToChar(const char *rowid, char *out, ub2 *len, void *err) { ub2 n = (ub2)strlen(rowid); if (n > *len) return fail(1); memcpy(out, rowid, n); *len = n; return OK; }

/* --- positions: version 2 has SCNs of eight bytes here; its real layout is Oracle's own ----------------------------------------------- */

static void put(ub1 *out, ub8 v, int n) { for (int i = n - 1; i >= 0; i--, v >>= 8) out[i] = (ub1)v; }
static ub8 get(const ub1 *in, int n) { ub8 v = 0; for (int i = 0; i < n; i++) v = v << 8 | in[i]; return v; }
static void number(ub8 v, ub1 *out) { /* OCINumber: length, exponent, digits to the base of 100 */
  ub1 digits[12]; int n = 0;
  for (; v; v /= 100) digits[n++] = (ub1)(v % 100);
  out[0] = (ub1)(n + 1); out[1] = (ub1)(n ? 0xC0 + n : 0x80);
  for (int i = 0; i < n; i++) out[2 + i] = digits[n - 1 - i] + 1;
}
static ub8 integer(const ub1 *in) {
  ub8 v = 0; int n = in[1] - 0xC0;
  if (in[1] == 0x80) return 0;
  for (int i = 0; i < n; i++) v = v * 100 + (i + 2 <= in[0] ? in[2 + i] - 1 : 0);
  return v;
}
sb4 OCILCRSCNToPosition2(void *svc, void *err, ub1 *p, ub2 *len, ub1 *scn, ub1 version, ub4 mode) {
  memset(p, 0, 33); put(p, integer(scn), 8); p[32] = version; *len = 33; return OK;
}
sb4 OCILCRSCNsFromPosition(void *svc, void *err, ub1 *p, ub2 len, ub1 *scn, ub1 *commit, ub4 mode) {
  if (len != 33) return fail(21560);
  number(get(p + 16, 8), scn); number(get(p, 8), commit); return OK;
}

/* --- the outbound server ------------------------------------------------------------------------------------------------------------- */

sb4 OCIXStreamOutAttach(void *svc, void *err, const char *server, ub2 server_len, ub1 *p, ub2 len, ub4 mode) {
  char text[2 * POSITION + 1] = "";
  if (injected()) return ERR;
  if (strncmp(server, "XOUT", server_len)) return fail(26701);
  FILE *f = beside("mark", "r");
  if (f) {
    ub1 *bytes;
    if (fscanf(f, "%128s", text) == 1) { mark_len = (ub2)unhex(text, &bytes); memcpy(mark, bytes, mark_len); free(bytes); }
    fclose(f);
  } else mark_len = 0;
  if (mark_len && p && len && !below(mark, mark_len, p, len)) return fail(21560);
  if (p && len) { memcpy(above, p, len); above_len = len; } else { memcpy(above, mark, mark_len); above_len = mark_len; }
  end_turn();
  if (!(f = beside("turn", "w"))) return fail(21560);
  turn = dup(fileno(f)); fclose(f);
  if (flock(turn, LOCK_EX | LOCK_NB)) { end_turn(); return fail(26812); }
  rewind(file);
  attached = 1; low_len = 0;
  return OK;
}
sb4 OCIXStreamOutDetach(void *svc, void *err, ub4 mode) {
  if (!attached || receiving) return fail(21560);
  if (injected()) return ERR;
  attached = 0; end_turn();
  if (mark_len) {
    FILE *f = beside("mark", "w");
    for (int i = 0; i < mark_len; i++) fprintf(f, "%02x", mark[i]);
    fclose(f);
  }
  return OK;
}
sb4 OCIXStreamOutProcessedLWMSet(void *svc, void *err, ub1 *p, ub2 len, ub4 mode) {
  if (!attached || injected()) return ERR;
  memcpy(mark, p, len); mark_len = len;
  return OK;
}
sb4 OCIXStreamOutLCRReceive(void *svc, void *err, void **out, ub1 *kind, ub8 *flag, ub1 *fetch_low, ub2 *fetch_len, ub4 mode) {
  if (!attached || chunk_at < lcr.chunks.count) return fail(21560);
  if (injected()) { receiving = 0; return ERR; }
  if (!next_lcr()) {
    *out = 0; receiving = 0; *fetch_len = low_len; memcpy(fetch_low, low, low_len);
    return OK;
  }
  receiving = 1; chunk_at = 0;
  *out = &lcr; *kind = lcr.kind; *flag = lcr.chunks.count ? 1 : 0;
  return MORE;
}
sb4 OCIXStreamOutChunkReceive(void *svc, void *err, ub1 **name, ub2 *name_len, ub2 *type, ub8 *flags, ub2 *csid, ub4 *size, ub1 **data, ub8 *more, ub4 mode) {
  if (!receiving || chunk_at >= lcr.chunks.count) return fail(21560);
  if (injected()) return ERR;
  Col *c = &lcr.chunks.list[chunk_at++];
  *name = c->name; *name_len = c->name_len; *type = c->type; *flags = c->flags; *csid = c->csid; *size = c->size; *data = c->value;
  *more = chunk_at < lcr.chunks.count;
  return OK;
}

/* --- the parts of an LCR --------------------------------------------------------------------------------------------------------------- */

sb4 OCILCRHeaderGet(void *svc, void *err, ub1 **db, ub2 *db_len, ub1 **cmd, ub2 *cmd_len, ub1 **owner, ub2 *owner_len, ub1 **name, ub2 *name_len,
                    ub1 **tag, ub2 *tag_len, ub1 **tx, ub2 *tx_len, ub1 *date, ub2 *olds, ub2 *news, ub1 **p, ub2 *p_len, ub8 *flags, void *l, ub4 mode) {
  ub1 **to[] = {db, cmd, owner, name, tag, tx}; ub2 *lengths[] = {db_len, cmd_len, owner_len, name_len, tag_len, tx_len};
  for (int i = 0; i < 6; i++) { *to[i] = lcr.text[i]; *lengths[i] = lcr.len[i]; }
  memcpy(date, lcr.date, 7); *p = lcr.position; *p_len = lcr.position_len; *flags = lcr.flags;
  return OK;
}
static int give(Cols *cols, ub2 *count, ub1 **names, ub2 *lens, ub2 *types, void **values, sb2 *nulls, ub2 *sizes, ub2 room) {
  if (cols->count > room) return fail(21560);
  *count = (ub2)cols->count;
  for (int i = 0; i < cols->count; i++) {
    Col *c = &cols->list[i];
    names[i] = c->name; lens[i] = c->name_len; types[i] = c->type; values[i] = c->value; nulls[i] = c->value ? 0 : -1; sizes[i] = (ub2)c->size;
  }
  return OK;
}
sb4 OCILCRRowColumnInfoGet(void *svc, void *err, ub2 side, ub2 *count, ub1 **names, ub2 *lens, ub2 *types, void **values, sb2 *nulls, ub2 *sizes,
                           ub1 *forms, ub8 *flags, ub2 *csids, void *l, ub2 room, ub4 mode) {
  Cols *cols = side ? &lcr.new : &lcr.old;
  if (side && !(mode & 1)) return fail(21560); /* the union of both lists is not what Redolake asks for */
  for (int i = 0; i < cols->count && i < room; i++) { flags[i] = cols->list[i].flags; csids[i] = 0; forms[i] = 1; }
  return give(cols, count, names, lens, types, values, nulls, sizes, room);
}
sb4 OCILCRAttributesGet(void *svc, void *err, ub2 *count, ub1 **names, ub2 *lens, ub2 *types, void **values, sb2 *nulls, ub2 *sizes, void *l, ub2 room, ub4 mode) {
  return give(&lcr.attributes, count, names, lens, types, values, nulls, sizes, room);
}
sb4 OCILCRDDLInfoGet(void *svc, void *err, ub1 **type, ub2 *type_len, ub1 **text, ub4 *text_len, ub1 **user, ub2 *user_len, ub1 **schema, ub2 *schema_len,
                     ub1 **owner, ub2 *owner_len, ub1 **name, ub2 *name_len, ub8 *flag, void *l, ub4 mode) {
  *type_len = *user_len = *schema_len = *owner_len = *name_len = 0; *text = lcr.ddl; *text_len = lcr.ddl_len; *flag = 0;
  return OK;
}
sb4 OCILCRLobInfoGet(void *svc, void *err, ub1 **name, ub2 *name_len, ub2 *type, ub8 *flags, ub4 *offset, ub4 *size, void *l, ub4 mode) {
  if (!lcr.chunks.count) return fail(21560);
  Col *c = &lcr.chunks.list[0];
  *name = c->name; *name_len = c->name_len; *type = c->type; *flags = c->flags; *offset = *size = 0;
  return OK;
}
