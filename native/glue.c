/* The guest side of toolcell's QuickJS executor: one translation unit around QuickJS-NG.
 *
 * Owns: the byte channel to the host, memory accounting, interruption, and the few primitives the
 * guest controller needs. Above: src/toolcell/execution/quickjs/engine.py, which must agree with
 * struct control and the exports below. Refuses to know: tools, requests, what a frame means.
 *
 * No host function is imported but the clock. Everything else QuickJS could reach through WASI is
 * cut off here, by turning its debug printing into nothing, so that nothing else can be linked.
 */
#include <stdio.h>
#define printf(...) ((void)0)
#define fprintf(...) ((void)0)
#define vfprintf(...) ((void)0)
#define fputs(...) ((void)0)
#define fputc(...) ((void)0)
#define putchar(...) ((void)0)
#define puts(...) ((void)0)
#define fwrite(...) ((void)0)
#define fflush(...) ((void)0)
#include "quickjs.c"
#include <sys/time.h>
#include <time.h>

#define EXPORT(name) __attribute__((export_name(#name), used))
/* What an out-of-memory error may still allocate, so that it is an Error and never a bare null. */
#define OOM_RESERVE (128u << 10)
/* Most texts of one frame: `<id> <method> [` and arguments with their commas. */
#define FRAME_PARTS 8
/* Above this the frame buffer is given back between steps. */
#define FRAME_BUFFER_KEPT (256u << 10)

enum { FLAG_RUN = 0, FLAG_CANCELLED = 1, FLAG_DEADLINE = 2, FLAG_MEMORY = 3 };
enum { RC_OK = 0, RC_BROKEN = 1, RC_STOPPED = 2 };
enum { FRAME_DONE = 4, FRAME_FAIL = 5, FRAME_BROKEN = 100 };
enum { OP_SETTLE = 2, OP_JUDGE = 3 };

/* Read and poked by the host as plain memory; keep in step with engine.py. */
static struct control {
    volatile int32_t flag;   /*  0 why the guest must stop */
    volatile uint32_t oom;   /*  4 allocations refused so far */
    volatile int64_t deadline; /* 8 guest monotonic ns, 0 = none */
    int64_t mono_base;       /* 16 host monotonic ns minus this instance's own */
    uint8_t *out;            /* 24 frames of this step */
    uint32_t out_len;        /* 28 */
    uint32_t out_cap;        /* 32 */
    uint32_t out_max;        /* 36 0 = no limit */
    uint32_t heap_used;      /* 40 */
    uint32_t heap_limit;     /* 44 0 = no limit */
    uint32_t out_refused;    /* 48 frames that did not fit */
} ctl;

static JSRuntime *rt;
static JSContext *cx;
static JSValue controller, extensions, dispatcher, taken;
static uint32_t extension_count, taken_count;
static struct { JSValue *items; uint32_t len, cap; } rejected;

/* ---- clock: the one import ------------------------------------------------------------------ */

__attribute__((import_module("wasi_snapshot_preview1"), import_name("clock_time_get")))
int wasi_clock_time_get(int id, long long precision, void *out);

static int64_t clock_ns(int id) {
    int64_t t = 0;
    wasi_clock_time_get(id, 1000, &t);
    return t;
}
/* Every instance starts its own monotonic clock; the base makes it one clock across restores. */
static int64_t monotonic_ns(void) { return clock_ns(1) + ctl.mono_base; }

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
    int64_t t = clock_ns(0);
    tv->tv_sec = t / 1000000000;
    tv->tv_usec = (t % 1000000000) / 1000;
    return 0;
}
int clock_gettime(clockid_t id, struct timespec *ts) {
    int64_t t = monotonic_ns();
    ts->tv_sec = t / 1000000000;
    ts->tv_nsec = t % 1000000000;
    return 0;
}

/* ---- the heap ------------------------------------------------------------------------------- */

/* The allocator of the pinned libc rounds every block up to a power of two, its records included,
 * and never joins what is free: an object of 48 bytes takes 128, and after one large value nothing
 * else fits. Here a block takes its class, records lie outside, and free pages join.
 *
 * A page of 64 KiB is a slab of blocks of one class, or belongs to a run of pages: one large block,
 * or free. */
#define PAGE 65536u
#define PAGES 65536u
#define SLAB_HEAD 32u
#define SMALL_MAX 32752u
#define CLASSES 40

enum { PAGE_OTHER = 0, PAGE_SLAB, PAGE_RUN, PAGE_FREE };

/* At the end of its page, so that blocks of 4 KiB, which QuickJS cuts small ones from, lie each on
 * one page of a snapshot. */
struct slab {
    struct slab *next, *prev; /* among those of its class with room */
    uint8_t *freed;
    uint32_t fresh;           /* offset of what was never used */
    uint16_t used, capacity;
    uint32_t size, kind;      /* of a block; index of its class */
};
struct run {
    struct run *next, *prev;
};

static uint8_t page_kind[PAGES];   /* of a slab; of the first page of a run; of both ends of a free one */
static uint16_t page_count[PAGES]; /* pages of the run, at the same places */
static uint8_t class_of[SMALL_MAX / 16 + 1];
static uint16_t class_size[CLASSES];
static struct slab *roomy[CLASSES];
static struct run *free_runs;

static void heap_init(void) {
    uint32_t count = 0, size = 16;
    for (; size <= 2048; size += size < 128 ? 16 : size < 256 ? 32 : size < 512 ? 64 : size < 1024 ? 128 : 256)
        class_size[count++] = size;
    static const uint8_t per_page[] = { 25, 21, 18, 15, 13, 11, 9, 7, 5, 4, 3, 2 };
    for (uint32_t i = 0; i < sizeof per_page; i++)
        class_size[count++] = per_page[i] == 15 ? 4096 : (PAGE - SLAB_HEAD) / per_page[i] & ~15u;
    for (uint32_t i = 0, kind = 0; i <= SMALL_MAX / 16; i++) {
        if (i * 16 > class_size[kind])
            kind++;
        class_of[i] = kind;
    }
}

static uint32_t page_of(const void *p) { return (uint32_t)(uintptr_t)p >> 16; }
static void *page_at(uint32_t page) { return (void *)(uintptr_t)(page << 16); }

static struct slab *slab_at(uint32_t page) {
    return (struct slab *)((uint8_t *)page_at(page) + PAGE - SLAB_HEAD);
}

static void unlist_run(uint32_t first) {
    struct run *r = page_at(first);
    if (r->prev)
        r->prev->next = r->next;
    else
        free_runs = r->next;
    if (r->next)
        r->next->prev = r->prev;
    page_kind[first] = page_kind[first + page_count[first] - 1] = PAGE_OTHER;
}
static void give_pages(uint32_t first, uint32_t count) {
    uint32_t after = first + count;
    page_kind[first] = PAGE_OTHER;
    if (page_kind[first - 1] == PAGE_FREE) {
        first -= page_count[first - 1];
        unlist_run(first);
    }
    if (after < PAGES && page_kind[after] == PAGE_FREE) {
        uint32_t more = page_count[after];
        unlist_run(after);
        after += more;
    }
    page_kind[first] = page_kind[after - 1] = PAGE_FREE;
    page_count[first] = page_count[after - 1] = after - first;
    struct run *r = page_at(first);
    r->prev = NULL;
    r->next = free_runs;
    if (r->next)
        r->next->prev = r;
    free_runs = r;
}
/* The smallest free run that is large enough; else the end of memory is moved. 0: there is none. */
static uint32_t take_pages(uint32_t count) {
    struct run *best = NULL;
    uint32_t least = UINT32_MAX;
    for (struct run *r = free_runs; r && least != count; r = r->next) {
        uint32_t n = page_count[page_of(r)];
        if (n >= count && n < least) {
            best = r;
            least = n;
        }
    }
    if (best) {
        uint32_t first = page_of(best);
        unlist_run(first);
        if (least > count)
            give_pages(first + count, least - count);
        return first;
    }
    uint32_t end = __builtin_wasm_memory_size(0);
    uint32_t last = page_kind[end - 1] == PAGE_FREE ? page_count[end - 1] : 0;
    if (end + count - last > PAGES || __builtin_wasm_memory_grow(0, count - last) == (size_t)-1)
        return 0;
    if (last)
        unlist_run(end - last);
    return end - last;
}

static void list_slab(struct slab *s) {
    s->prev = NULL;
    s->next = roomy[s->kind];
    if (s->next)
        s->next->prev = s;
    roomy[s->kind] = s;
}
static void unlist_slab(struct slab *s) {
    if (s->prev)
        s->prev->next = s->next;
    else
        roomy[s->kind] = s->next;
    if (s->next)
        s->next->prev = s->prev;
}
static struct slab *new_slab(uint32_t kind) {
    uint32_t page = take_pages(1);
    if (!page)
        return NULL;
    page_kind[page] = PAGE_SLAB;
    struct slab *s = slab_at(page);
    uint32_t size = class_size[kind];
    s->freed = NULL;
    s->fresh = 0;
    s->used = 0;
    s->capacity = (PAGE - SLAB_HEAD) / size;
    s->size = size;
    s->kind = kind;
    list_slab(s);
    return s;
}
static uint32_t pages_for(uint32_t size) { return size / PAGE + (size % PAGE != 0); }

static void *block_alloc(uint32_t size) {
    if (size > SMALL_MAX) {
        uint32_t count = pages_for(size), page = take_pages(count);
        if (!page)
            return NULL;
        page_kind[page] = PAGE_RUN;
        page_count[page] = count;
        return page_at(page);
    }
    uint32_t kind = class_of[(size + 15) / 16];
    struct slab *s = roomy[kind];
    if (!s && !(s = new_slab(kind)))
        return NULL;
    uint8_t *p = s->freed;
    if (p) {
        s->freed = *(uint8_t **)p;
    } else {
        p = (uint8_t *)page_at(page_of(s)) + s->fresh;
        s->fresh += s->size;
    }
    if (++s->used == s->capacity)
        unlist_slab(s);
    return p;
}
static uint32_t block_size(const void *p) {
    uint32_t page = page_of(p);
    if (page_kind[page] == PAGE_RUN)
        return page_count[page] * PAGE;
    return slab_at(page)->size;
}
static void block_free(void *p) {
    uint32_t page = page_of(p);
    if (page_kind[page] == PAGE_RUN) {
        give_pages(page, page_count[page]);
        return;
    }
    struct slab *s = slab_at(page);
    *(uint8_t **)p = s->freed;
    s->freed = p;
    if (s->used-- == s->capacity) {
        list_slab(s);
    } else if (!s->used && (s->next || s->prev)) {
        unlist_slab(s);
        give_pages(page, 1);
    }
}
/* What was let go of is zero, which a snapshot of grown memory does not hold. */
static void clear_free_runs(void) {
    for (struct run *r = free_runs; r; r = r->next)
        memset(r + 1, 0, page_count[page_of(r)] * PAGE - sizeof *r);
}
/* A run of pages may grow where it lies, into free pages behind it or at the end of memory. */
static bool stretch(uint32_t page, uint32_t count) {
    uint32_t had = page_count[page], after = page + had;
    if (count < had) {
        page_count[page] = count;
        give_pages(page + count, had - count);
        return true;
    }
    uint32_t end = __builtin_wasm_memory_size(0);
    uint32_t there = after < end && page_kind[after] == PAGE_FREE ? page_count[after] : 0;
    uint32_t missing = count - had > there ? count - had - there : 0;
    if (missing && (after + there != end || end + missing > PAGES ||
                    __builtin_wasm_memory_grow(0, missing) == (size_t)-1))
        return false;
    if (there)
        unlist_run(after);
    page_count[page] = count;
    if (had + there > count)
        give_pages(page + count, had + there - count);
    return true;
}
static void *block_realloc(void *p, uint32_t size) {
    uint32_t page = page_of(p), had = block_size(p);
    if (page_kind[page] == PAGE_RUN && size > SMALL_MAX) {
        uint32_t count = pages_for(size);
        if (count == page_count[page] || stretch(page, count))
            return p;
    } else if (size <= had && size > had / 2) {
        return p;
    }
    void *q = block_alloc(size);
    if (!q)
        return size <= had ? p : NULL;
    memcpy(q, p, size < had ? size : had);
    block_free(p);
    return q;
}

/* ---- memory: counted where QuickJS asks for blocks ------------------------------------------ */

/* While QuickJS makes its out-of-memory error it may use the reserve. When even that is gone the
 * cell is stopped, because the next error would be a null that guest code cannot tell apart. */
static bool may_allocate(uint32_t size) {
    uint32_t limit = ctl.heap_limit;
    if (!limit)
        return true;
    if (rt && rt->in_out_of_memory)
        limit += OOM_RESERVE;
    return ctl.heap_used <= limit && size <= limit - ctl.heap_used;
}
static void *refuse(void) {
    ctl.oom++;
    if (rt && rt->in_out_of_memory)
        ctl.flag = FLAG_MEMORY;
    return NULL;
}
static void *heap_malloc(void *opaque, size_t size) {
    if (!may_allocate(size))
        return refuse();
    void *p = block_alloc(size);
    if (!p)
        return refuse();
    ctl.heap_used += block_size(p);
    return p;
}
static void *heap_calloc(void *opaque, size_t count, size_t size) {
    if (size && count > UINT32_MAX / size)
        return refuse();
    void *p = heap_malloc(opaque, count * size);
    return p ? memset(p, 0, count * size) : NULL;
}
static void heap_free(void *opaque, void *p) {
    if (!p)
        return;
    ctl.heap_used -= block_size(p);
    block_free(p);
}
static void *heap_realloc(void *opaque, void *p, size_t size) {
    if (!p)
        return heap_malloc(opaque, size);
    uint32_t before = block_size(p);
    if (size > before && !may_allocate(size - before))
        return refuse();
    void *q = block_realloc(p, size);
    if (!q)
        return refuse();
    ctl.heap_used += block_size(q) - before;
    return q;
}
static size_t heap_usable(const void *p) { return p ? block_size(p) : 0; }

/* ---- frames: guest to host ------------------------------------------------------------------ */

/* Room for one frame of `size` bytes, its header written; NULL when it must not or cannot be. */
static uint8_t *frame_room(uint32_t kind, uint32_t size) {
    bool last = kind == FRAME_FAIL || kind == FRAME_BROKEN;
    if (size > INT32_MAX / 4 || ctl.out_len > INT32_MAX / 4) {
        ctl.out_refused++;
        return NULL;
    }
    uint32_t need = ctl.out_len + 8 + size;
    /* The frame that says why a cell failed always fits. */
    if (ctl.out_max && need > ctl.out_max && !(last && size <= OOM_RESERVE)) {
        ctl.out_refused++;
        return NULL;
    }
    if (need > ctl.out_cap) {
        /* A large buffer grows by a quarter: it lies in the cell's memory beside what it copies. */
        uint32_t cap = ctl.out_cap < FRAME_BUFFER_KEPT ? ctl.out_cap * 2 : ctl.out_cap / 4 * 5;
        if (cap < need)
            cap = need < 4096 ? 4096 : need;
        uint8_t *grown = heap_realloc(NULL, ctl.out, cap);
        if (!grown)
            return NULL;
        ctl.out = grown;
        ctl.out_cap = cap;
    }
    memcpy(ctl.out + ctl.out_len, &kind, 4);
    memcpy(ctl.out + ctl.out_len + 4, &size, 4);
    uint8_t *room = ctl.out + ctl.out_len + 8;
    ctl.out_len = need;
    return room;
}

static bool emit(uint32_t kind, const char *text, uint32_t size) {
    uint8_t *room = frame_room(kind, size);
    if (!room)
        return false;
    memcpy(room, text, size);
    return true;
}

/* The next code point of wide text; a surrogate without its other half stays one. */
static uint32_t next_point(const uint16_t *units, uint32_t length, uint32_t *at) {
    uint32_t c = units[(*at)++];
    if (is_hi_surrogate(c) && *at < length && is_lo_surrogate(units[*at]))
        c = from_surrogate(c, units[(*at)++]);
    return c;
}

static uint64_t utf8_size(JSString *s) {
    uint64_t size = s->len;
    if (!s->is_wide_char) {
        const uint8_t *bytes = str8(s);
        for (uint32_t at = 0; at < s->len; at++)
            size += bytes[at] >> 7;
        return size;
    }
    const uint16_t *units = str16(s);
    for (uint32_t at = size = 0; at < s->len;) {
        uint32_t c = next_point(units, s->len, &at);
        size += c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    }
    return size;
}

static void write_utf8(uint8_t *room, JSString *s, uint64_t size) {
    if (size == s->len && !s->is_wide_char) {
        memcpy(room, str8(s), size);
        return;
    }
    for (uint32_t at = 0; at < s->len;) {
        uint32_t c = s->is_wide_char ? next_point(str16(s), s->len, &at) : str8(s)[at++];
        if (c < 0x80)
            *room++ = c;
        else
            room += utf8_encode(room, c);
    }
}

/* ---- the engine's side of the controller ---------------------------------------------------- */

/* One frame of one or more strings, written as UTF-8 straight into the buffer: a text of megabytes
 * is neither joined nor converted on the way. */
static JSValue engine_emit(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
    int kind, count = 0;
    JSValue parts[FRAME_PARTS];
    uint64_t sizes[FRAME_PARTS], size = 0;
    uint32_t refused = ctl.oom;
    JSValue done = JS_EXCEPTION;
    if (JS_ToInt32(c, &kind, argv[0]))
        return JS_EXCEPTION;
    if (argc > FRAME_PARTS + 1)
        return JS_ThrowRangeError(c, "a frame of too many texts");
    while (count < argc - 1) {
        JSValue text = js_force_tostring(c, argv[count + 1]);
        if (JS_IsException(text))
            goto end;
        size += sizes[count] = utf8_size(JS_VALUE_GET_STRING(text));
        parts[count++] = text;
    }
    uint8_t *room = frame_room(kind, size > UINT32_MAX ? UINT32_MAX : (uint32_t)size);
    for (int i = 0; room && i < count; room += sizes[i++])
        write_utf8(room, JS_VALUE_GET_STRING(parts[i]), sizes[i]);
    done = !room && ctl.oom > refused ? JS_ThrowOutOfMemory(c) : JS_NewBool(c, room != NULL);
end:
    while (count-- > 0)
        JS_FreeValue(c, parts[count]);
    return done;
}

static const char OPENING[] = "(async function(){\n", CLOSING[] = "\n})";

static JSValue refuse_breakout(JSContext *c, const char *text, uint32_t end, const char *filename) {
    uint32_t line = 0, column = 1;
    for (uint32_t i = 0; i < end; i++) {
        if (text[i] == '\n') {
            line++;
            column = 1;
        } else {
            column++;
        }
    }
    char stack[512];
    snprintf(stack, sizeof stack, "    at %.400s:%u:%u\n", filename, line, column);
    JS_ThrowSyntaxError(c, "unexpected token in expression: '}'");
    JSValue error = JS_GetException(c);
    if (JS_IsObject(error))
        JS_DefinePropertyValueStr(c, error, "stack", JS_NewString(c, stack),
                                  JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE);
    return JS_Throw(c, error);
}

/* The text is wrapped in one function expression and compiled, not yet run. Only when the program
 * is exactly that one function, to its last brace, did the source not close it early. */
static JSValue compile_wrapped(JSContext *c, const char *text, uint32_t size, const char *filename) {
    JSValue program = JS_EvalInternal(c, c->global_obj, text, size, filename, 0,
                                      JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_COMPILE_ONLY, -1);
    if (JS_IsException(program))
        return program;
    JSFunctionBytecode *outer = JS_VALUE_GET_PTR(program), *inner = NULL;
    for (int i = 0; i < outer->cpool_count && !inner; i++)
        if (JS_VALUE_GET_TAG(outer->cpool[i]) == JS_TAG_FUNCTION_BYTECODE)
            inner = JS_VALUE_GET_PTR(outer->cpool[i]);
    uint32_t whole = size - 2;
    if (!inner || (uint32_t)inner->source_len != whole) {
        uint32_t end = inner ? (uint32_t)inner->source_len : 0;
        JS_FreeValue(c, program);
        return refuse_breakout(c, text, end < size ? end : size, filename);
    }
    return JS_EvalFunction(c, program);
}

static JSValue engine_compile(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
    size_t size;
    JSValue result = JS_EXCEPTION;
    const char *source = JS_ToCStringLen(c, &size, argv[0]);
    const char *filename = source ? JS_ToCString(c, argv[1]) : NULL;
    if (filename) {
        uint32_t opening = sizeof OPENING - 1, closing = sizeof CLOSING - 1;
        uint32_t whole = opening + size + closing;
        char *text = js_malloc(c, whole + 1);
        if (text) {
            memcpy(text, OPENING, opening);
            memcpy(text + opening, source, size);
            memcpy(text + opening + size, CLOSING, closing + 1);
            result = compile_wrapped(c, text, whole, filename);
            js_free(c, text);
        }
    }
    JS_FreeCString(c, filename);
    JS_FreeCString(c, source);
    return result;
}

static JSPromiseData *promise_of(JSValueConst value) {
    return JS_GetOpaque(value, JS_CLASS_PROMISE);
}

static JSValue engine_is_promise(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
    return JS_NewBool(c, promise_of(argv[0]) != NULL);
}

/* Like promise.then(fulfilled, rejected), but it reads no property that guest code could change. */
static JSValue engine_watch(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
    JSValueConst none[2] = { JS_UNDEFINED, JS_UNDEFINED };
    if (!promise_of(argv[0]))
        return JS_ThrowTypeError(c, "not a promise");
    if (perform_promise_then(c, argv[0], argv + 1, none))
        return JS_EXCEPTION;
    return JS_UNDEFINED;
}

static bool still_unhandled(JSValueConst promise) {
    JSPromiseData *data = promise_of(promise);
    return data && data->promise_state == JS_PROMISE_REJECTED && !data->is_handled;
}

static void forget_handled(void) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rejected.len; i++) {
        if (still_unhandled(rejected.items[i]))
            rejected.items[kept++] = rejected.items[i];
        else
            JS_FreeValueRT(rt, rejected.items[i]);
    }
    rejected.len = kept;
}

static void on_rejection(JSContext *c, JSValueConst promise, JSValueConst reason, bool handled,
                         void *opaque) {
    if (handled)
        return;
    if (rejected.len == rejected.cap) {
        forget_handled();
        if (rejected.len * 2 >= rejected.cap) {
            uint32_t cap = rejected.cap ? rejected.cap * 2 : 8;
            JSValue *grown = heap_realloc(NULL, rejected.items, cap * sizeof(JSValue));
            if (!grown) {
                ctl.flag = FLAG_MEMORY;
                return;
            }
            rejected.items = grown;
            rejected.cap = cap;
        }
    }
    rejected.items[rejected.len++] = JS_DupValue(c, promise);
}

static JSValue engine_unhandled(JSContext *c, JSValueConst self, int argc, JSValueConst *argv) {
    forget_handled();
    JSValue list = JS_NewArray(c);
    for (uint32_t i = 0; i < rejected.len && !JS_IsException(list); i++) {
        JSValue reason = JS_DupValue(c, promise_of(rejected.items[i])->promise_result);
        if (JS_DefinePropertyValueUint32(c, list, i, reason, JS_PROP_C_W_E) < 0) {
            JS_FreeValue(c, list);
            list = JS_EXCEPTION;
        }
    }
    return list;
}

/* ---- running -------------------------------------------------------------------------------- */

static int on_interrupt(JSRuntime *r, void *opaque) {
    if (!ctl.flag && ctl.deadline && monotonic_ns() >= ctl.deadline)
        ctl.flag = FLAG_DEADLINE;
    return ctl.flag != FLAG_RUN;
}

/* An exception that reached the engine itself: the controller broke, or memory is exhausted. */
static int broken(void) {
    JSValue error = JS_GetException(cx);
    if (!ctl.flag && ctl.oom)
        ctl.flag = FLAG_MEMORY;
    if (ctl.flag) {
        JS_FreeValue(cx, error);
        return RC_STOPPED;
    }
    char text[2048];
    const char *message = JS_ToCString(cx, error);
    JSValue trace = JS_IsError(error) ? JS_GetPropertyStr(cx, error, "stack") : JS_UNDEFINED;
    const char *stack = JS_IsString(trace) ? JS_ToCString(cx, trace) : NULL;
    snprintf(text, sizeof text, "%.900s\n%.900s", message ? message : "error", stack ? stack : "");
    JS_FreeCString(cx, message);
    JS_FreeCString(cx, stack);
    JS_FreeValue(cx, trace);
    JS_FreeValue(cx, error);
    emit(FRAME_BROKEN, text, strlen(text));
    return RC_BROKEN;
}

static int drain(void) {
    JSContext *c;
    for (;;) {
        int rc = ctl.flag ? -1 : JS_ExecutePendingJob(rt, &c);
        if (rc == 0)
            return RC_OK;
        if (ctl.flag)
            return RC_STOPPED;
        if (rc < 0) {
            /* A job that cannot even run its reaction leaves its promise pending for ever. */
            if (ctl.oom)
                return broken();
            JS_FreeValue(cx, JS_GetException(cx));
        }
    }
}

static int dispatch(int op, JSValue message) {
    JSValueConst argv[2] = { JS_NewInt32(cx, op), message };
    JSValue result = JS_Call(cx, dispatcher, JS_UNDEFINED, 2, argv);
    JS_FreeValue(cx, message);
    if (JS_IsException(result))
        return broken();
    JS_FreeValue(cx, result);
    return ctl.flag ? RC_STOPPED : RC_OK;
}

static void define_engine_function(JSValueConst engine, const char *name, JSCFunction *f, int n) {
    JS_DefinePropertyValueStr(cx, engine, name, JS_NewCFunction(cx, f, name, n), JS_PROP_C_W_E);
}

/* Stack frames as objects would hand the controller's functions to guest code. */
static void remove_call_sites(void) {
    JSAtom name = JS_NewAtom(cx, "prepareStackTrace");
    JS_DeleteProperty(cx, cx->error_ctor, name, 0);
    JS_FreeAtom(cx, name);
}

/* ---- exports: making an image --------------------------------------------------------------- */

EXPORT(cm_control) void *cm_control(void) { return &ctl; }

EXPORT(cm_init) int cm_init(void) {
    static const JSMallocFunctions heap = {
        heap_calloc, heap_malloc, heap_free, heap_realloc, heap_usable,
    };
    heap_init();
    controller = extensions = dispatcher = taken = JS_UNDEFINED;
    rt = JS_NewRuntime2(&heap, NULL);
    if (!rt)
        return RC_BROKEN;
    cx = JS_NewContext(rt);
    if (!cx)
        return RC_BROKEN;
    JS_SetInterruptHandler(rt, on_interrupt, NULL);
    JS_SetHostPromiseRejectionTracker(rt, on_rejection, NULL);
    remove_call_sites();
    extensions = JS_NewArray(cx);
    return JS_IsException(extensions) ? broken() : RC_OK;
}

/* Evaluates one expression of the prelude: which = 0 the controller, 1 the next extension. */
EXPORT(cm_script) int cm_script(int which, char *source, uint32_t size, char *name) {
    JSValue value = JS_Eval(cx, source, size, name, JS_EVAL_TYPE_GLOBAL);
    if (JS_IsException(value))
        return broken();
    if (which == 0) {
        controller = value;
    } else {
        JSValue entry = JS_NewObjectProto(cx, JS_NULL);
        JS_DefinePropertyValueStr(cx, entry, "name", JS_NewString(cx, name), JS_PROP_C_W_E);
        JS_DefinePropertyValueStr(cx, entry, "install", value, JS_PROP_C_W_E);
        JS_DefinePropertyValueUint32(cx, extensions, extension_count++, entry, JS_PROP_C_W_E);
    }
    heap_free(NULL, source);
    heap_free(NULL, name);
    return RC_OK;
}

EXPORT(cm_boot) int cm_boot(char *data, uint32_t size) {
    JSValue parsed = JS_ParseJSON(cx, data, size, "<data>");
    if (JS_IsException(parsed))
        return broken();
    JSValue engine = JS_NewObjectProto(cx, JS_NULL);
    define_engine_function(engine, "emit", engine_emit, 2);
    define_engine_function(engine, "compile", engine_compile, 2);
    define_engine_function(engine, "unhandled", engine_unhandled, 0);
    define_engine_function(engine, "watch", engine_watch, 3);
    define_engine_function(engine, "isPromise", engine_is_promise, 1);
    JSValueConst argv[3] = { engine, extensions, parsed };
    dispatcher = JS_Call(cx, controller, JS_UNDEFINED, 3, argv);
    JS_FreeValue(cx, engine);
    JS_FreeValue(cx, parsed);
    JS_FreeValue(cx, extensions);
    JS_FreeValue(cx, controller);
    controller = extensions = JS_UNDEFINED;
    heap_free(NULL, data);
    if (JS_IsException(dispatcher))
        return broken();
    int rc = drain();
    JS_RunGC(rt);
    clear_free_runs();
    return rc;
}

/* ---- exports: running a cell ---------------------------------------------------------------- */

/* Before the first step of a cell: memory counts from here on. */
EXPORT(cm_begin) void cm_begin(uint64_t seed, uint32_t memory, uint32_t stack, uint32_t frames,
                               uint64_t host_ns) {
    cx->random_state = seed ? seed : 1;
    ctl.heap_limit = memory < UINT32_MAX - ctl.heap_used ? ctl.heap_used + memory : UINT32_MAX;
    ctl.out_max = frames;
    ctl.mono_base = (int64_t)host_ns - clock_ns(1);
    cx->time_origin = js__now_ms();
    JS_SetMaxStackSize(rt, stack);
}

/* Before a snapshot. */
EXPORT(cm_rest) void cm_rest(void) { clear_free_runs(); }

/* Memory for one message; cm_step takes it over. */
EXPORT(cm_message) void *cm_message(uint32_t size) {
    return size < UINT32_MAX ? heap_malloc(NULL, size + 1) : NULL;
}

/* Takes one answer of the message to come, so that the texts of large ones never lie in memory
 * together. RC_STOPPED: what it says does not fit in memory; nothing of it is left. */
EXPORT(cm_take) int cm_take(char *text, uint32_t size) {
    JS_UpdateStackTop(rt);
    uint32_t refused = ctl.oom;
    text[size] = 0;
    JSValue answer = JS_ParseJSON(cx, text, size, "<answer>");
    heap_free(NULL, text);
    if (!JS_IsException(answer) && JS_IsUndefined(taken))
        taken = JS_NewArray(cx);
    if (!JS_IsException(answer) && !JS_IsException(taken) &&
        JS_DefinePropertyValueUint32(cx, taken, taken_count, answer, JS_PROP_C_W_E) >= 0) {
        taken_count++;
        return RC_OK;
    }
    if (ctl.oom == refused)
        return broken();
    JS_FreeValue(cx, JS_GetException(cx));
    if (JS_IsException(taken))
        taken = JS_UNDEFINED;
    ctl.oom = refused;
    if (ctl.flag == FLAG_MEMORY)
        ctl.flag = FLAG_RUN;
    return RC_STOPPED;
}

static JSValue take_message(int op, char *text, uint32_t size) {
    JSValue message = taken;
    if (op == OP_SETTLE && !JS_IsUndefined(taken)) {
        taken = JS_UNDEFINED;
        taken_count = 0;
    } else {
        text[size] = 0;
        message = JS_ParseJSON(cx, text, size, "<message>");
    }
    heap_free(NULL, text);
    return message;
}

/* Delivers one message, or all answers taken before, drains the job queue and lets the controller judge whether it is over. */
EXPORT(cm_step) int cm_step(int op, char *text, uint32_t size, int64_t budget_ns, int64_t host_ns) {
    JS_UpdateStackTop(rt);
    ctl.mono_base = host_ns - clock_ns(1);
    ctl.deadline = budget_ns > 0 ? host_ns + budget_ns : 0;
    ctl.out_len = 0;
    if (ctl.out_cap > FRAME_BUFFER_KEPT) {
        heap_free(NULL, ctl.out);
        ctl.out = NULL;
        ctl.out_cap = 0;
    }
    JSValue message = take_message(op, text, size);
    if (JS_IsException(message))
        return broken();
    int rc = dispatch(op, message);
    if (rc == RC_OK)
        rc = drain();
    if (rc == RC_OK) {
        uint32_t limit = ctl.heap_limit;
        if (ctl.oom && limit && limit < UINT32_MAX - OOM_RESERVE)
            ctl.heap_limit += OOM_RESERVE; /* room to say that memory ran out */
        rc = dispatch(OP_JUDGE, JS_UNDEFINED);
        ctl.heap_limit = limit;
        ctl.deadline = 0;
    }
    return rc;
}
