/* A music synthesiser: a sequencer reads patterns, channels start voices (samples, wave tables, two operator
   FM, plucked strings), envelopes and low frequency oscillators modulate them, buses run chains of plugins. */
#include "../heap.h"

typedef float sample_t;
typedef int16_t pcm_t;
typedef uint32_t phase_t;

#define SYN_RATE        44100
#define SYN_BLOCK       64
#define SYN_VOICES      24
#define SYN_CHANNELS    8
#define SYN_BUSES       3
#define SYN_ROWS        32
#define SYN_WAVE_BITS   9
#define SYN_WAVE_SIZE   (1 << SYN_WAVE_BITS)
#define SYN_PATTERNS    6

typedef enum { SYN_SAMPLE, SYN_WAVE, SYN_FM, SYN_PLUCK, SYN_KINDS } syn_kind_t;
typedef enum { SEG_IDLE, SEG_ATTACK, SEG_DECAY, SEG_SUSTAIN, SEG_RELEASE } syn_segment_t;
typedef enum { FX_NONE, FX_VOLUME, FX_SLIDE, FX_PORTA, FX_VIBRATO, FX_PAN, FX_TEMPO, FX_COUNT } syn_fx_t;

typedef struct syn_voice_s syn_voice_t;
typedef struct syn_channel_s syn_channel_t;
typedef struct syn_s syn_t;

typedef struct {
    uint8_t note, instrument;
    uint8_t fx : 4, fx_hi : 4;
    uint8_t param;
} syn_event_t;

typedef struct {
    char name[24];
    uint16_t rows, plays;
    syn_event_t events[SYN_ROWS][SYN_CHANNELS];
} syn_pattern_t;

typedef struct {
    uint32_t frames, loop_start, loop_end;
    uint32_t rate;
    pcm_t frame[];
} syn_pcm_t;

typedef struct {
    float attack, decay, sustain, release;
} syn_adsr_t;

typedef struct {
    char name[16];
    syn_kind_t kind;
    syn_adsr_t amp, filter;
    float cutoff, resonance, env_to_cutoff;
    struct { float rate, depth; } lfo;
    uint8_t bus, transpose;
    union {
        syn_pcm_t *pcm;
        struct { const sample_t *table; float detune; } wave;
        struct { float ratio, index, feedback; } fm;
        struct { float damping, brightness; uint16_t stretch; } pluck;
    };
} syn_instrument_t;

typedef struct {
    syn_segment_t segment;
    float level, rate;
    const syn_adsr_t *adsr;
} syn_env_t;

struct syn_voice_s {
    syn_voice_t *next;              /* of its channel, or free */
    const syn_instrument_t *instrument;
    syn_channel_t *channel;
    phase_t phase, step;
    union {
        struct { uint64_t position; uint32_t increment; } sample;
        struct { phase_t other; } wave;
        struct { phase_t modulator; sample_t last[2]; } fm;
        struct { uint32_t length, at; sample_t before; } pluck;
    } u;
    syn_env_t amp, filter;
    struct { phase_t phase, step; } lfo;
    struct { sample_t low, band; } svf;
    sample_t *string;               /* kept from note to note */
    float velocity, pan;
    uint32_t age;
};

struct syn_channel_s {
    syn_voice_t *voices;
    uint8_t instrument, last_note;
    float volume, pan;
    float slide, porta_target;
    struct { uint8_t speed, depth; phase_t phase; } vibrato;
    uint32_t notes;
};

typedef struct {
    const char *name;
    void *(*open)(int variant);
    void (*run)(void *handle, sample_t *left, sample_t *right, int n);
} syn_plugin_t;

typedef struct syn_slot_s {
    struct syn_slot_s *next;
    const syn_plugin_t *plugin;
    void *handle;
    float wet;
    uint64_t blocks;
} syn_slot_t;

typedef struct {
    sample_t left[SYN_BLOCK], right[SYN_BLOCK];
    syn_slot_t *chain;
    float gain;
    struct { float peak, rms; uint32_t clips; } meter;
} syn_bus_t;

struct syn_s {
    syn_voice_t *voices, *free_voices;
    syn_channel_t channels[SYN_CHANNELS];
    syn_bus_t *buses;
    sample_t *scratch;
    sample_t mix[2 * SYN_BLOCK];
    pcm_t *ring;
    uint32_t ring_size, ring_at;
    struct { uint16_t order, row; uint8_t tick, ticks_per_row; uint32_t frames_left, frames_per_tick; } seq;
    syn_pattern_t *patterns[SYN_PATTERNS];
    syn_instrument_t *bank;
    int instruments;
    uint64_t clock;
};

typedef void (*syn_fx_func_t)(syn_t *syn, syn_channel_t *ch, const syn_event_t *ev);
typedef void (*syn_render_func_t)(syn_voice_t *v, sample_t *out, int n);

static sample_t syn_sine[SYN_WAVE_SIZE + 1], syn_saw[SYN_WAVE_SIZE + 1], syn_square[SYN_WAVE_SIZE + 1];
static phase_t syn_pitch[128];
static float syn_pan_law[65];
static struct syn_stats { uint64_t notes, stolen, blocks, rows, killed; } syn_stats;

/* ---- tables ---- */

static void syn_init_tables(void)
{
    double c = 1, s = 0, rc = 0.99992470183914450, rs = 0.01227153828571993; /* of a 512th of a turn */
    double ratio = 1.0594630943592953, hz = 8.175798915643707;
    for (int i = 0; i <= SYN_WAVE_SIZE; i++) {
        double k = c * rc - s * rs;
        syn_sine[i] = (sample_t)s;
        syn_saw[i] = (sample_t)i / (SYN_WAVE_SIZE / 2) - 1;
        syn_square[i] = i < SYN_WAVE_SIZE / 2 ? 0.7f : -0.7f;
        s = c * rs + s * rc;
        c = k;
    }
    for (int n = 0; n < 128; n++, hz *= ratio)
        syn_pitch[n] = (phase_t)(hz / SYN_RATE * 4294967296.0);
    for (int i = 0; i <= 64; i++)
        syn_pan_law[i] = syn_sine[i * (SYN_WAVE_SIZE / 4) / 64];
}

static inline sample_t syn_lookup(const sample_t *table, phase_t phase)
{
    uint32_t i = phase >> (32 - SYN_WAVE_BITS);
    float frac = (float)(phase << SYN_WAVE_BITS >> 8) * (1.0f / 16777216);
    return table[i] + (table[i + 1] - table[i]) * frac;
}

static inline float syn_soft_clip(float x)
{
    if (x > 3) return 1;
    if (x < -3) return -1;
    return x * (27 + x * x) / (27 + 9 * x * x);
}

/* ---- voices ---- */

static NOINLINE void syn_env_advance(syn_env_t *env, int n)
{
    const syn_adsr_t *a = env->adsr;
    switch (env->segment) {
    case SEG_ATTACK:
        env->level += a->attack * n;
        if (env->level >= 1) env->level = 1, env->segment = SEG_DECAY;
        break;
    case SEG_DECAY:
        env->level += (a->sustain - env->level) * a->decay * n;
        if (env->level - a->sustain < 0.01f) env->segment = SEG_SUSTAIN;
        break;
    case SEG_RELEASE:
        env->level -= env->level * a->release * n;
        if (env->level < 0.004f) env->level = 0, env->segment = SEG_IDLE;
        break;
    default: break;
    }
}

static void render_sample(syn_voice_t *v, sample_t *out, int n)
{
    const syn_pcm_t *pcm = v->instrument->pcm;
    uint64_t loop = (uint64_t)(pcm->loop_end - pcm->loop_start) << 16;
    for (int i = 0; i < n; i++) {
        uint32_t at = (uint32_t)(v->u.sample.position >> 16);
        float frac = (float)(v->u.sample.position & 0xffff) * (1.0f / 65536);
        out[i] = (pcm->frame[at] + (pcm->frame[at + 1] - pcm->frame[at]) * frac) * (1.0f / 32768);
        v->u.sample.position += v->u.sample.increment;
        if (v->u.sample.position >> 16 >= pcm->loop_end) v->u.sample.position -= loop;
    }
}

static void render_wave(syn_voice_t *v, sample_t *out, int n)
{
    const sample_t *table = v->instrument->wave.table;
    phase_t other = (phase_t)((float)v->step * v->instrument->wave.detune);
    for (int i = 0; i < n; i++) {
        out[i] = 0.5f * (syn_lookup(table, v->phase) + syn_lookup(table, v->u.wave.other));
        v->phase += v->step;
        v->u.wave.other += other;
    }
}

static void render_fm(syn_voice_t *v, sample_t *out, int n)
{
    const syn_instrument_t *in = v->instrument;
    phase_t step = (phase_t)((float)v->step * in->fm.ratio);
    float index = in->fm.index * v->amp.level * 4e8f;
    for (int i = 0; i < n; i++) {
        float fb = (v->u.fm.last[0] + v->u.fm.last[1]) * in->fm.feedback;
        sample_t m = syn_lookup(syn_sine, v->u.fm.modulator + (phase_t)(int32_t)(fb * 2e8f));
        v->u.fm.last[1] = v->u.fm.last[0];
        v->u.fm.last[0] = m;
        out[i] = syn_lookup(syn_sine, v->phase + (phase_t)(int32_t)(m * index));
        v->phase += v->step;
        v->u.fm.modulator += step;
    }
}

static void render_pluck(syn_voice_t *v, sample_t *out, int n)
{
    const float damping = v->instrument->pluck.damping;
    for (int i = 0; i < n; i++) {
        sample_t now = v->string[v->u.pluck.at];
        out[i] = now;
        v->string[v->u.pluck.at] = (now + v->u.pluck.before) * 0.5f * damping;
        v->u.pluck.before = now;
        if (++v->u.pluck.at == v->u.pluck.length) v->u.pluck.at = 0;
    }
}

static const syn_render_func_t syn_renderers[SYN_KINDS] = { render_sample, render_wave, render_fm, render_pluck };

static NOINLINE void syn_filter(syn_voice_t *v, sample_t *out, int n)
{
    const syn_instrument_t *in = v->instrument;
    float lfo = syn_lookup(syn_sine, v->lfo.phase) * in->lfo.depth;
    float f = in->cutoff * (1 + lfo) + in->env_to_cutoff * v->filter.level, q = 1 - in->resonance;
    sample_t low = v->svf.low, band = v->svf.band;
    if (f > 0.9f) f = 0.9f;
    for (int i = 0; i < n; i++) {
        low += f * band;
        band += f * (out[i] - low - q * band);
        out[i] = low;
    }
    v->svf.low = low;
    v->svf.band = band;
    v->lfo.phase += v->lfo.step * (uint32_t)n;
}

static void syn_voice_off(syn_t *syn, syn_voice_t *v)
{
    syn_voice_t **link = &v->channel->voices;
    while (*link != v) link = &(*link)->next;
    *link = v->next;
    v->next = syn->free_voices;
    syn->free_voices = v;
    v->channel = NULL;
    syn_stats.killed++;
}

static NOINLINE syn_voice_t *syn_voice_find(syn_t *syn)
{
    syn_voice_t *v = syn->free_voices, *best = NULL;
    if (!v) {
        for (v = syn->voices; v < syn->voices + SYN_VOICES; v++)
            if (!best || v->amp.level - (float)v->age * 1e-3f < best->amp.level - (float)best->age * 1e-3f) best = v;
        syn_voice_off(syn, best);
        syn_stats.stolen++;
        v = best;
    }
    syn->free_voices = v->next;
    return v;
}

static void syn_env_start(syn_env_t *env, const syn_adsr_t *adsr)
{
    env->adsr = adsr;
    env->segment = SEG_ATTACK;
    env->level = 0;
}

static NOINLINE void syn_note_on(syn_t *syn, syn_channel_t *ch, uint8_t note)
{
    const syn_instrument_t *in = &syn->bank[ch->instrument % syn->instruments];
    syn_voice_t *v;
    for (v = ch->voices; v; v = v->next)
        v->amp.segment = v->filter.segment = SEG_RELEASE;
    v = syn_voice_find(syn);
    v->instrument = in;
    v->channel = ch;
    v->next = ch->voices;
    ch->voices = v;
    v->phase = 0;
    v->step = syn_pitch[(note + in->transpose) & 127];
    v->velocity = 0.5f + (float)(note & 15) / 32;
    v->pan = ch->pan;
    v->age = 0;
    v->svf.low = v->svf.band = 0;
    v->lfo.step = (phase_t)(in->lfo.rate * 97391);
    syn_env_start(&v->amp, &in->amp);
    syn_env_start(&v->filter, &in->filter);
    switch (in->kind) {
    case SYN_SAMPLE:
        v->u.sample.position = 0;
        v->u.sample.increment = (uint32_t)((uint64_t)v->step * in->pcm->rate >> 22);
        break;
    case SYN_PLUCK: {
        sample_t *string = v->string;
        if (!string) string = v->string = HEAP_CALLOC(float, 512);
        v->u.pluck.length = 0xffffffffu / (v->step + 1) / in->pluck.stretch % 500 + 8;
        v->u.pluck.at = 0;
        v->u.pluck.before = 0;
        for (uint32_t i = 0; i < v->u.pluck.length; i++)
            string[i] = syn_saw[(i * 73 + note * 131u) & (SYN_WAVE_SIZE - 1)] * in->pluck.brightness;
        break;
    }
    default: memset(&v->u.fm.last, 0, sizeof v->u.fm.last), v->u.wave.other = 0;
    }
    ch->last_note = note;
    ch->notes++;
    syn_stats.notes++;
}

static NOINLINE void syn_voice_mix(syn_t *syn, syn_voice_t *v, int n)
{
    sample_t *buffer = syn->scratch;
    const syn_instrument_t *in = v->instrument;
    syn_bus_t *bus = &syn->buses[in->bus];
    float from = v->amp.level, gain, step, l, r;
    int pan = (int)(v->pan * 64);
    syn_env_advance(&v->amp, n);
    syn_env_advance(&v->filter, n);
    syn_renderers[in->kind](v, buffer, n);
    if (in->resonance > 0) syn_filter(v, buffer, n);
    gain = from * v->velocity * v->channel->volume;
    step = (v->amp.level - from) * v->velocity * v->channel->volume / (float)n;
    l = syn_pan_law[64 - pan];
    r = syn_pan_law[pan];
    for (int i = 0; i < n; i++, gain += step) {
        bus->left[i] += buffer[i] * gain * l;
        bus->right[i] += buffer[i] * gain * r;
    }
    v->age += (uint32_t)n;
}

/* ---- plugins ---- */

typedef struct {
    sample_t *line[2];
    uint32_t length, at;
    float feedback, wet;
    sample_t damp[2];
} echo_t;

typedef struct {
    struct comb { sample_t *buffer; uint16_t size, at; sample_t store; } combs[4];
    struct allpass { sample_t *buffer; uint16_t size, at; } allpasses[2];
    float room, damping;
} reverb_t;

typedef struct {
    struct { double b0, b1, b2, a1, a2; } coefficient;
    struct { double x1, x2, y1, y2; } state[2];
} biquad_t;

typedef struct {
    float threshold, ratio, envelope;
    float attack, release;
    float history[32];
    unsigned at;
} compressor_t;

static void *echo_open(int variant)
{
    echo_t *e = HEAP_CALLOC(echo_t, 1);
    e->length = (uint32_t)(2000 + variant * 731);
    e->line[0] = HEAP_CALLOC(float, e->length);
    e->line[1] = HEAP_CALLOC(float, e->length);
    e->feedback = 0.4f;
    e->wet = 0.3f;
    return e;
}

static void echo_run(void *handle, sample_t *left, sample_t *right, int n)
{
    echo_t *e = handle;
    for (int i = 0; i < n; i++) {
        sample_t l = e->line[0][e->at], r = e->line[1][e->at];
        e->damp[0] += (l - e->damp[0]) * 0.6f;
        e->damp[1] += (r - e->damp[1]) * 0.6f;
        e->line[0][e->at] = left[i] + e->damp[1] * e->feedback;
        e->line[1][e->at] = right[i] + e->damp[0] * e->feedback;
        left[i] += l * e->wet;
        right[i] += r * e->wet;
        if (++e->at == e->length) e->at = 0;
    }
}

static void *reverb_open(int variant)
{
    static const uint16_t sizes[6] = { 1116, 1188, 1277, 1356, 556, 441 };
    reverb_t *r = HEAP_MALLOC(reverb_t);
    memset(r, 0, sizeof *r);
    for (int i = 0; i < 4; i++) {
        r->combs[i].size = sizes[i];
        r->combs[i].buffer = HEAP_CALLOC(float, sizes[i]);
    }
    for (int i = 0; i < 2; i++) {
        r->allpasses[i].size = sizes[4 + i];
        r->allpasses[i].buffer = HEAP_CALLOC(float, sizes[4 + i]);
    }
    r->room = 0.8f + 0.02f * (float)variant;
    r->damping = 0.3f;
    return r;
}

static void reverb_run(void *handle, sample_t *left, sample_t *right, int n)
{
    reverb_t *r = handle;
    for (int i = 0; i < n; i += 2) {
        sample_t in = (left[i] + right[i]) * 0.1f, out = 0;
        for (struct comb *c = r->combs; c < r->combs + 4; c++) {
            sample_t y = c->buffer[c->at];
            c->store = y * (1 - r->damping) + c->store * r->damping;
            c->buffer[c->at] = in + c->store * r->room;
            if (++c->at == c->size) c->at = 0;
            out += y;
        }
        for (struct allpass *a = r->allpasses; a < r->allpasses + 2; a++) {
            sample_t y = a->buffer[a->at], x = out;
            out = y - x;
            a->buffer[a->at] = x + y * 0.5f;
            if (++a->at == a->size) a->at = 0;
        }
        left[i] += out;
        right[i] -= out;
    }
}

static void *biquad_open(int variant)
{
    biquad_t *b = HEAP_CALLOC(biquad_t, 1);
    double w = 0.05 + 0.02 * variant;
    b->coefficient.b0 = b->coefficient.b2 = w * w;
    b->coefficient.b1 = 2 * w * w;
    b->coefficient.a1 = -2 + 2.6 * w;
    b->coefficient.a2 = 1 - 2.6 * w + 0.9 * w * w;
    return b;
}

static void biquad_run(void *handle, sample_t *left, sample_t *right, int n)
{
    biquad_t *b = handle;
    for (int side = 0; side < 2; side++) {
        sample_t *io = side ? right : left;
        for (int i = 0; i < n; i++) {
            double x = io[i], y = b->coefficient.b0 * x + b->coefficient.b1 * b->state[side].x1 + b->coefficient.b2 * b->state[side].x2 -
                                  b->coefficient.a1 * b->state[side].y1 - b->coefficient.a2 * b->state[side].y2;
            b->state[side].x2 = b->state[side].x1;
            b->state[side].x1 = x;
            b->state[side].y2 = b->state[side].y1;
            b->state[side].y1 = y;
            io[i] = (sample_t)y;
        }
    }
}

static void *compressor_open(int variant)
{
    compressor_t *c = HEAP_CALLOC(compressor_t, 1);
    c->threshold = 0.3f;
    c->ratio = 2.0f + (float)variant;
    c->attack = 0.2f;
    c->release = 0.02f;
    return c;
}

static void compressor_run(void *handle, sample_t *left, sample_t *right, int n)
{
    compressor_t *c = handle;
    float sum = 0, gain;
    for (int i = 0; i < n; i++) {
        float l = left[i] < 0 ? -left[i] : left[i], r = right[i] < 0 ? -right[i] : right[i];
        float level = l > r ? l : r;
        c->envelope += (level - c->envelope) * (level > c->envelope ? c->attack : c->release);
    }
    c->history[c->at++ % 32] = c->envelope;
    for (int i = 0; i < 32; i++) sum += c->history[i];
    gain = sum / 32 > c->threshold ? c->threshold + (1 - c->threshold) / c->ratio : 1;
    for (int i = 0; i < n; i++) {
        left[i] *= gain;
        right[i] *= gain;
    }
}

static const syn_plugin_t syn_plugins[] = {
    { "echo", echo_open, echo_run },
    { "reverb", reverb_open, reverb_run },
    { "low pass", biquad_open, biquad_run },
    { "compressor", compressor_open, compressor_run },
};

/* ---- the sequencer ---- */

static void fx_volume(syn_t *syn, syn_channel_t *ch, const syn_event_t *ev) { (void)syn; ch->volume = (float)ev->param / 255; }
static void fx_slide(syn_t *syn, syn_channel_t *ch, const syn_event_t *ev) { (void)syn; ch->slide = (float)(ev->param - 128) / 4096; }
static void fx_porta(syn_t *syn, syn_channel_t *ch, const syn_event_t *ev) { (void)syn; ch->porta_target = (float)syn_pitch[ev->param & 127]; }
static void fx_pan(syn_t *syn, syn_channel_t *ch, const syn_event_t *ev) { (void)syn; ch->pan = (float)ev->param / 255; }
static void fx_tempo(syn_t *syn, syn_channel_t *ch, const syn_event_t *ev) { (void)ch; syn->seq.frames_per_tick = 200u + ev->param; }
static void fx_vibrato(syn_t *syn, syn_channel_t *ch, const syn_event_t *ev)
{
    (void)syn;
    ch->vibrato.speed = ev->param >> 4;
    ch->vibrato.depth = ev->param & 15;
}

static const syn_fx_func_t syn_fx[FX_COUNT] = { NULL, fx_volume, fx_slide, fx_porta, fx_vibrato, fx_pan, fx_tempo };

static NOINLINE void syn_row(syn_t *syn)
{
    syn_pattern_t *pattern = syn->patterns[syn->seq.order];
    for (int c = 0; c < SYN_CHANNELS; c++) {
        const syn_event_t *ev = &pattern->events[syn->seq.row][c];
        syn_channel_t *ch = &syn->channels[c];
        if (ev->instrument) ch->instrument = ev->instrument;
        if (ev->fx < FX_COUNT && syn_fx[ev->fx]) syn_fx[ev->fx](syn, ch, ev);
        if (ev->note == 255)
            for (syn_voice_t *v = ch->voices; v; v = v->next) v->amp.segment = SEG_RELEASE;
        else if (ev->note) syn_note_on(syn, ch, ev->note);
    }
    syn_stats.rows++;
    if (++syn->seq.row < pattern->rows) return;
    pattern->plays++;
    syn->seq.row = 0;
    syn->seq.order = (syn->seq.order + 1) % SYN_PATTERNS;
}

static NOINLINE void syn_tick(syn_t *syn)
{
    if (syn->seq.tick == 0) syn_row(syn);
    syn->seq.tick = (uint8_t)((syn->seq.tick + 1) % syn->seq.ticks_per_row);
    for (syn_channel_t *ch = syn->channels; ch < syn->channels + SYN_CHANNELS; ch++) {
        ch->volume += ch->slide;
        if (ch->volume > 1 || ch->volume < 0.2f) ch->slide = -ch->slide, ch->volume = ch->volume > 1 ? 1 : 0.2f;
        ch->vibrato.phase += (phase_t)ch->vibrato.speed << 26;
        for (syn_voice_t *v = ch->voices, *next; v; v = next) {
            int32_t bend = (int32_t)(syn_lookup(syn_sine, ch->vibrato.phase) * (float)ch->vibrato.depth * 4000);
            next = v->next;
            v->step += (phase_t)bend;
            if (ch->porta_target > 0) v->step += (phase_t)(int32_t)((ch->porta_target - (float)v->step) * 0.1f);
            if (v->amp.segment == SEG_IDLE) syn_voice_off(syn, v);
        }
    }
    syn->seq.frames_left = syn->seq.frames_per_tick;
}

static NOINLINE void syn_mix_down(syn_t *syn, int n)
{
    for (int i = 0; i < 2 * n; i++) syn->mix[i] = 0;
    for (syn_bus_t *bus = syn->buses; bus < syn->buses + SYN_BUSES; bus++) {
        float peak = 0, sum = 0;
        for (int i = 0; i < n; i++) {
            float l = bus->left[i] * bus->gain, r = bus->right[i] * bus->gain;
            syn->mix[2 * i] += l;
            syn->mix[2 * i + 1] += r;
            sum += l * l + r * r;
            if (l > peak) peak = l;
        }
        bus->meter.peak = peak > bus->meter.peak ? peak : bus->meter.peak * 0.99f;
        bus->meter.rms += (sum / (float)n - bus->meter.rms) * 0.1f;
        bus->meter.clips += peak > 1;
    }
    for (int i = 0; i < 2 * n; i++) {
        syn->ring[syn->ring_at++] = (pcm_t)(syn_soft_clip(syn->mix[i]) * 32000);
        if (syn->ring_at == syn->ring_size) syn->ring_at = 0;
    }
}

static NOINLINE void syn_render(syn_t *syn)
{
    int n = syn->seq.frames_left < SYN_BLOCK ? (int)syn->seq.frames_left & ~1 : SYN_BLOCK;
    if (n) {
        for (syn_bus_t *bus = syn->buses; bus < syn->buses + SYN_BUSES; bus++)
            for (int i = 0; i < n; i++) bus->left[i] = bus->right[i] = 0;
        for (syn_voice_t *v = syn->voices; v < syn->voices + SYN_VOICES; v++)
            if (v->channel && v->amp.segment != SEG_IDLE) syn_voice_mix(syn, v, n);
        for (syn_bus_t *bus = syn->buses; bus < syn->buses + SYN_BUSES; bus++)
            for (syn_slot_t *slot = bus->chain; slot; slot = slot->next) {
                slot->plugin->run(slot->handle, bus->left, bus->right, n);
                slot->blocks++;
            }
        syn_mix_down(syn, n);
        syn->seq.frames_left -= (uint32_t)n;
        syn->clock += (uint64_t)n;
        syn_stats.blocks++;
    }
    if (syn->seq.frames_left < 2) syn_tick(syn);
}

/* ---- a song ---- */

static void compose(syn_t *syn)
{
    static const uint8_t scale[7] = { 0, 2, 3, 5, 7, 8, 10 };
    static const char *const names[SYN_KINDS] = { "drum", "lead", "bell", "string" };
    syn->instruments = 10;
    syn->bank = HEAP_CALLOC(syn_instrument_t, syn->instruments);
    for (int i = 0; i < syn->instruments; i++) {
        syn_instrument_t *in = &syn->bank[i];
        syn_adsr_t amp = { 0.02f, 0.0005f, 0.4f, 0.0008f }, filter = { 0.004f, 0.001f, 0.2f, 0.001f };
        snprintf(in->name, sizeof in->name, "%s %d", names[i % SYN_KINDS], i);
        in->kind = i == 6 ? SYN_SAMPLE : (syn_kind_t)(i % SYN_KINDS);
        in->amp = amp;
        in->filter = filter;
        in->cutoff = 0.1f + 0.03f * (float)i;
        in->resonance = in->kind == SYN_WAVE || i == 0 ? 0.5f : 0;
        in->env_to_cutoff = 0.3f;
        in->lfo.rate = 3 + (float)i;
        in->lfo.depth = 0.2f;
        in->bus = (uint8_t)(i % SYN_BUSES);
        in->transpose = (uint8_t)(i % 3 * 12);
        switch (in->kind) {
        case SYN_SAMPLE: {
            uint32_t frames = 3000 + 400u * (uint32_t)i;
            in->pcm = HEAP_FLEXIBLE(syn_pcm_t, sizeof(syn_pcm_t) + (frames + 2) * sizeof(pcm_t));
            in->pcm->frames = frames;
            in->pcm->loop_start = frames / 2;
            in->pcm->loop_end = frames;
            in->pcm->rate = 22050;
            for (uint32_t f = 0; f < frames + 2; f++) in->pcm->frame[f] = (pcm_t)((int)(tr_rand() >> 48) - 32768);
            break;
        }
        case SYN_WAVE: in->wave.table = i & 4 ? syn_square : syn_saw, in->wave.detune = 1.004f; break;
        case SYN_FM: in->fm.ratio = 1.5f + (float)(i / 4), in->fm.index = 1.2f, in->fm.feedback = 0.1f; break;
        default: in->pluck.damping = 0.996f, in->pluck.brightness = 0.8f, in->pluck.stretch = 1;
        }
    }
    for (int p = 0; p < SYN_PATTERNS; p++) {
        syn_pattern_t *pattern = syn->patterns[p] = HEAP_CALLOC(syn_pattern_t, 1);
        snprintf(pattern->name, sizeof pattern->name, "part %d", p);
        pattern->rows = SYN_ROWS;
        for (int row = 0; row < SYN_ROWS; row++)
            for (int c = 0; c < SYN_CHANNELS; c++) {
                uint64_t r = tr_rand();
                syn_event_t *ev = &pattern->events[row][c];
                if ((r & 7) < 3) ev->note = (uint8_t)(36 + 12 * (c % 3) + scale[(r >> 8) % 7]);
                else if ((r & 63) == 63) ev->note = 255;
                if ((r >> 20 & 7) == 0) ev->instrument = (uint8_t)((r >> 24) % (unsigned)syn->instruments);
                if ((r >> 30 & 3) == 0) ev->fx = (uint8_t)((r >> 32) % FX_COUNT), ev->param = (uint8_t)(r >> 40);
            }
    }
    for (int b = 0; b < SYN_BUSES; b++) {
        syn->buses[b].gain = 0.5f;
        for (int k = 0; k < 2; k++) {
            syn_slot_t *slot = HEAP_CALLOC(syn_slot_t, 1);
            slot->plugin = &syn_plugins[(b + k * 2) % 4];
            slot->handle = slot->plugin->open(b);
            slot->next = syn->buses[b].chain;
            syn->buses[b].chain = slot;
        }
    }
}

int main(int argc, char **argv)
{
    static syn_t syn;
    uint64_t sum = 0;
    tr_init(argc, argv);
    TR_GLOBAL(syn_sine, "sample_t []");
    TR_GLOBAL(syn_saw, "sample_t []");
    TR_GLOBAL(syn_square, "sample_t []");
    TR_GLOBAL(syn_pitch, "phase_t []");
    TR_GLOBAL(syn_pan_law, "float []");
    TR_GLOBAL(syn_stats, "struct syn_stats");
    TR_GLOBAL(syn_renderers, "syn_render_func_t []");
    TR_GLOBAL(syn_plugins, "syn_plugin_t []");
    TR_GLOBAL(syn_fx, "syn_fx_func_t []");
    TR_GLOBAL(syn, "syn_t");
    TR_CHECK(syn_voice_t, age);
    TR_CHECK(syn_instrument_t, bus);
    TR_CHECK(syn_t, clock);
    syn_init_tables();
    syn.voices = HEAP_CALLOC(syn_voice_t, SYN_VOICES);
    syn.buses = HEAP_CALLOC(syn_bus_t, SYN_BUSES);
    syn.scratch = HEAP_CALLOC(float, SYN_BLOCK);
    for (int i = 0; i < SYN_VOICES; i++) {
        syn.voices[i].next = syn.free_voices;
        syn.free_voices = &syn.voices[i];
    }
    for (int c = 0; c < SYN_CHANNELS; c++) {
        syn.channels[c].volume = 0.8f;
        syn.channels[c].pan = 0.1f + 0.1f * (float)c;
        syn.channels[c].instrument = (uint8_t)c;
    }
    syn.ring_size = 8192;
    syn.ring = HEAP_CALLOC(short, syn.ring_size);
    syn.seq.ticks_per_row = 3;
    syn.seq.frames_per_tick = 300;
    compose(&syn);
    while (tr_more()) {
        for (int i = 0; i < 16; i++) syn_render(&syn);
        sum += (uint16_t)syn.ring[syn.ring_at];
    }
    if (getenv("VERBOSE"))
        printf("%lu notes %lu stolen %lu blocks %lu rows, rms %f %f %f\n", syn_stats.notes, syn_stats.stolen, syn_stats.blocks, syn_stats.rows,
               syn.buses[0].meter.rms, syn.buses[1].meter.rms, syn.buses[2].meter.rms);
    tr_sink = sum;
    return 0;
}
