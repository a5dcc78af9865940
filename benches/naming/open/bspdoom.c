//-----------------------------------------------------------------------------
// A software renderer over a BSP tree (solid segs, visplanes, drawsegs, vissprites,
// column and span drawers) and a game tick (thinkers, states, movement through the
// blockmap, moving floors, sound through sectors) on zone memory.
//
// In the manner of id Software's Doom.
//-----------------------------------------------------------------------------
#include "../heap.h"

typedef unsigned char byte;
typedef enum { false, true } boolean;
typedef int fixed_t;
typedef unsigned angle_t;
typedef byte lighttable_t;
#define FRACBITS 16
#define FRACUNIT (1<<FRACBITS)
#define MAXINT 0x7fffffff
#define MININT (-MAXINT-1)
#define FINEANGLES 8192
#define FINEMASK (FINEANGLES-1)
#define ANGLETOFINESHIFT 19
#define ANG45 0x20000000u
#define ANG90 0x40000000u
#define ANG180 0x80000000u
#define ANG270 0xc0000000u
#define SLOPERANGE 2048
#define DBITS 5
#define SCREENWIDTH 320
#define SCREENHEIGHT 200
static void I_Error(const char *s) { fprintf(stderr, "%s\n", s); abort(); }
static inline fixed_t FixedMul(fixed_t a, fixed_t b) { return ((long long)a * (long long)b) >> FRACBITS; }
static inline fixed_t FixedDiv(fixed_t a, fixed_t b)
{
    if ((abs(a) >> 14) >= abs(b)) return (a ^ b) < 0 ? MININT : MAXINT;
    return (fixed_t)(((long long)a << FRACBITS) / b);
}

// tables
static fixed_t finesine[5*FINEANGLES/4];
static fixed_t *finecosine = &finesine[FINEANGLES/4];
static fixed_t finetangent[FINEANGLES/2];
static angle_t tantoangle[SLOPERANGE+1];
static byte rndtable[256];
static int prndindex;
static int P_Random(void) { prndindex = (prndindex+1) & 0xff; return rndtable[prndindex]; }

// ---- z_zone ----
#define PU_STATIC 1
#define PU_LEVEL 50
#define PU_LEVSPEC 51
#define ZONEID 0x1d4a11
typedef struct memblock_s { int size; void **user; int tag, id; struct memblock_s *next, *prev; struct zonekind_s *kind; } memblock_t;
typedef struct zonekind_s { const char *name; memblock_t *rover; } zonekind_t;
static memblock_t mainzone;
static zonekind_t zonekinds[48];
static int numzonekinds;

static NOINLINE void *Z_MallocKind(const char *name, int elem, int size, int tag, void *user)
{
    zonekind_t *k;
    memblock_t *block, **p;
    for (k = zonekinds; k < zonekinds + numzonekinds && strcmp(k->name, name); k++);
    if (k == zonekinds + numzonekinds) { if (numzonekinds == 48) I_Error("Z_Malloc: kinds"); numzonekinds++; k->name = name; }
    for (p = &k->rover; (block = *p) != NULL && block->size != size; p = &block->next);
    if (block) *p = block->next;
    else {
        block = calloc(1, sizeof(memblock_t) + size + 8);
        if (!block) I_Error("Z_Malloc: failed");
        tr_region("memblock_t", block, sizeof(memblock_t), sizeof(memblock_t));
        tr_region(name, block + 1, size, elem);
    }
    block->size = size; block->tag = tag; block->id = ZONEID; block->kind = k;
    block->user = user;
    block->next = &mainzone; block->prev = mainzone.prev;
    mainzone.prev->next = block; mainzone.prev = block;
    if (user) *(void **)user = block + 1;
    return block + 1;
}
#define Z_Malloc(T, tag, user) ((T *)Z_MallocKind(#T, sizeof(T), sizeof(T), tag, user))
#define Z_MallocArray(T, n, tag, user) ((T *)Z_MallocKind(#T, sizeof(T), sizeof(T) * (n), tag, user))

static void Z_Free(void *ptr)
{
    memblock_t *block = (memblock_t *)((byte *)ptr - sizeof(memblock_t));
    if (block->id != ZONEID) I_Error("Z_Free: freed a pointer without ZONEID");
    if (block->user) *block->user = NULL;
    block->prev->next = block->next; block->next->prev = block->prev;
    block->id = 0; block->next = block->kind->rover; block->kind->rover = block;
}

static void Z_FreeTags(int lowtag, int hightag)
{
    memblock_t *block, *next;
    for (block = mainzone.next; block != &mainzone; block = next) {
        next = block->next;
        if (block->tag >= lowtag && block->tag <= hightag) Z_Free(block + 1);
    }
}

// ---- data ----
struct mobj_s; struct player_s; struct line_s;
typedef void (*actionf_v)(void);
typedef void (*actionf_p1)(void *);
typedef union { actionf_p1 acp1; actionf_v acv; } actionf_t;
typedef struct thinker_s { struct thinker_s *prev, *next; actionf_t function; } thinker_t;
typedef struct { fixed_t x, y; } vertex_t;
typedef struct { thinker_t thinker; fixed_t x, y, z; } degenmobj_t;
typedef struct { fixed_t floorheight, ceilingheight; short floorpic, ceilingpic, lightlevel, special, tag; int soundtraversed; struct mobj_s *soundtarget; int blockbox[4]; degenmobj_t soundorg; int validcount; struct mobj_s *thinglist; void *specialdata; int linecount; struct line_s **lines; } sector_t;
typedef struct { fixed_t textureoffset, rowoffset; short toptexture, bottomtexture, midtexture; sector_t *sector; } side_t;
typedef enum { ST_HORIZONTAL, ST_VERTICAL, ST_POSITIVE, ST_NEGATIVE } slopetype_t;
typedef struct line_s { vertex_t *v1, *v2; fixed_t dx, dy; short flags, special, tag; short sidenum[2]; fixed_t bbox[4]; slopetype_t slopetype; sector_t *frontsector, *backsector; int validcount; void *specialdata; } line_t;
typedef struct subsector_s { sector_t *sector; short numlines, firstline; } subsector_t;
typedef struct { vertex_t *v1, *v2; fixed_t offset; angle_t angle; side_t *sidedef; line_t *linedef; sector_t *frontsector, *backsector; } seg_t;
typedef struct { fixed_t x, y, dx, dy; fixed_t bbox[2][4]; unsigned short children[2]; } node_t;
enum { BOXTOP, BOXBOTTOM, BOXLEFT, BOXRIGHT };
#define NF_SUBSECTOR 0x8000
#define ML_BLOCKING 1
#define ML_TWOSIDED 4

typedef enum { S_NULL, S_STND, S_STND2, S_RUN1, S_RUN2, S_RUN3, S_RUN4, S_ATK1, S_ATK2, S_PAIN, S_DIE1, S_DIE2, S_BALL1, S_BALL2, S_BALLX1, S_BALLX2, S_PLAY, NUMSTATES } statenum_t;
typedef struct { int sprite; int frame; int tics; actionf_t action; statenum_t nextstate; int misc1, misc2; } state_t;
typedef enum { MT_PLAYER, MT_TROOP, MT_SERGEANT, MT_TROOPSHOT, NUMMOBJTYPES } mobjtype_t;
typedef struct { int doomednum, spawnstate, spawnhealth, seestate, reactiontime, painstate, painchance, missilestate, deathstate, speed, radius, height, mass, damage, flags; } mobjinfo_t;
#define MF_SOLID 2
#define MF_SHOOTABLE 4
#define MF_NOBLOCKMAP 0x10
#define MF_MISSILE 0x10000
#define MF_CORPSE 0x100000

typedef struct mobj_s {
    thinker_t thinker;
    fixed_t x, y, z;
    struct mobj_s *snext, *sprev;
    angle_t angle; int sprite, frame;
    struct mobj_s *bnext, *bprev;
    struct subsector_s *subsector;
    fixed_t floorz, ceilingz, radius, height, momx, momy, momz;
    int validcount;
    mobjtype_t type; mobjinfo_t *info;
    int tics; state_t *state; int flags, health, movedir, movecount;
    struct mobj_s *target; int reactiontime, threshold; struct player_s *player; int lastlook;
} mobj_t;
typedef struct player_s { mobj_t *mo; int playerstate; fixed_t viewz, viewheight, bob; int health, armorpoints, ammo[4], killcount, damagecount; angle_t turn; } player_t;
typedef struct { thinker_t thinker; sector_t *sector; fixed_t speed, low, high; int wait, count, status; } plat_t;
typedef struct { thinker_t thinker; sector_t *sector; int count, maxlight, minlight; } fireflicker_t;

static int numvertexes, numsegs, numsectors, numsubsectors, numnodes, numlines, numsides;
static vertex_t *vertexes; static seg_t *segs; static sector_t *sectors; static subsector_t *subsectors; static node_t *nodes; static line_t *lines; static side_t *sides;
static short *blockmaplump, *blockmap; static int bmapwidth, bmapheight; static fixed_t bmaporgx, bmaporgy; static mobj_t **blocklinks;
static thinker_t thinkercap;
static int validcount = 1, leveltime;
static player_t players[1];
static struct { int kills, shots, moves, blocked, floors, heard; } level;

static void A_Look(void *), A_Chase(void *), A_FaceTarget(void *), A_TroopAttack(void *), A_Fall(void *);
static state_t states[NUMSTATES] = {
    {0,0,-1,{NULL},S_NULL,0,0}, {0,0,10,{A_Look},S_STND2,0,0}, {0,1,10,{A_Look},S_STND,0,0}, {0,0,3,{A_Chase},S_RUN2,0,0}, {0,1,3,{A_Chase},S_RUN3,0,0}, {0,2,3,{A_Chase},S_RUN4,0,0}, {0,3,3,{A_Chase},S_RUN1,0,0},
    {0,4,8,{A_FaceTarget},S_ATK2,0,0}, {0,5,6,{A_TroopAttack},S_RUN1,0,0}, {0,6,4,{NULL},S_RUN1,0,0}, {0,7,8,{A_Fall},S_DIE2,0,0}, {0,7,70,{NULL},S_NULL,0,0}, {1,0,4,{NULL},S_BALL2,0,0}, {1,1,4,{NULL},S_BALL1,0,0}, {1,2,6,{NULL},S_BALLX2,0,0}, {1,3,6,{NULL},S_NULL,0,0}, {0,3,-1,{NULL},S_NULL,0,0} };
static mobjinfo_t mobjinfo[NUMMOBJTYPES] = {
    {-1,S_PLAY,100,S_PLAY,0,S_PLAY,255,0,S_PLAY,0,16*FRACUNIT,56*FRACUNIT,100,0,MF_SOLID|MF_SHOOTABLE}, {3001,S_STND,60,S_RUN1,8,S_PAIN,200,S_ATK1,S_DIE1,8,20*FRACUNIT,56*FRACUNIT,100,0,MF_SOLID|MF_SHOOTABLE},
    {3002,S_STND,150,S_RUN1,8,S_PAIN,180,S_ATK1,S_DIE1,10,30*FRACUNIT,56*FRACUNIT,400,0,MF_SOLID|MF_SHOOTABLE}, {-1,S_BALL1,1000,0,8,0,0,0,S_BALLX1,10*FRACUNIT,6*FRACUNIT,8*FRACUNIT,100,3,MF_MISSILE|MF_NOBLOCKMAP} };

// ---- r_main ----
static fixed_t viewx, viewy, viewz, viewcos, viewsin; static angle_t viewangle;
static int centery = SCREENHEIGHT/2; static fixed_t centerxfrac = (SCREENWIDTH/2)<<FRACBITS, centeryfrac = (SCREENHEIGHT/2)<<FRACBITS, projection = (SCREENWIDTH/2)<<FRACBITS;
static angle_t clipangle, xtoviewangle[SCREENWIDTH+1]; static int viewangletox[FINEANGLES/2];
static byte screens[SCREENWIDTH*SCREENHEIGHT]; static byte *ylookup[SCREENHEIGHT]; static int columnofs[SCREENWIDTH];
#define LIGHTLEVELS 16
#define LIGHTSEGSHIFT 4
#define MAXLIGHTSCALE 48
#define LIGHTSCALESHIFT 12
#define MAXLIGHTZ 128
#define LIGHTZSHIFT 20
#define NUMCOLORMAPS 32
static lighttable_t *colormaps; static lighttable_t *scalelight[LIGHTLEVELS][MAXLIGHTSCALE]; static lighttable_t *zlight[LIGHTLEVELS][MAXLIGHTZ];
#define NUMTEXTURES 8
#define NUMFLATS 6
typedef struct { short originx, originy; int patch; } texpatch_t;
typedef struct { char name[8]; short width, height, patchcount; byte *composite; unsigned columnofs[64]; texpatch_t patches[2]; } texture_t;
static texture_t *textures[NUMTEXTURES]; static fixed_t textureheight[NUMTEXTURES]; static byte *flats[NUMFLATS];
typedef struct { byte topdelta, length; } post_t;
typedef struct { short width, height, leftoffset, topoffset; int columnofs[32]; byte data[]; } patch_t;
static patch_t *spritepatches[16];
static int detail_columns, detail_spans;

static int R_PointOnSide(fixed_t x, fixed_t y, node_t *node)
{
    fixed_t dx, dy;
    if (!node->dx) { if (x <= node->x) return node->dy > 0; return node->dy < 0; }
    if (!node->dy) { if (y <= node->y) return node->dx < 0; return node->dx > 0; }
    dx = x - node->x; dy = y - node->y;
    return FixedMul(dy, node->dx>>FRACBITS) >= FixedMul(node->dy>>FRACBITS, dx);
}

static inline int SlopeDiv(unsigned num, unsigned den)
{
    unsigned ans;
    if (den < 512) return SLOPERANGE;
    ans = (num<<3)/(den>>8);
    return ans <= SLOPERANGE ? (int)ans : SLOPERANGE;
}

static NOINLINE angle_t R_PointToAngle2(fixed_t x1, fixed_t y1, fixed_t x, fixed_t y)
{
    x -= x1; y -= y1;
    if (!x && !y) return 0;
    if (x >= 0) {
        if (y >= 0) return x > y ? tantoangle[SlopeDiv(y, x)] : ANG90-1-tantoangle[SlopeDiv(x, y)];
        y = -y;
        return x > y ? -tantoangle[SlopeDiv(y, x)] : ANG270+tantoangle[SlopeDiv(x, y)];
    }
    x = -x;
    if (y >= 0) return x > y ? ANG180-1-tantoangle[SlopeDiv(y, x)] : ANG90+tantoangle[SlopeDiv(x, y)];
    y = -y;
    return x > y ? ANG180+tantoangle[SlopeDiv(y, x)] : ANG270-1-tantoangle[SlopeDiv(x, y)];
}
#define R_PointToAngle(x, y) R_PointToAngle2(viewx, viewy, x, y)

static fixed_t R_PointToDist(fixed_t x, fixed_t y)
{
    fixed_t dx = abs(x - viewx), dy = abs(y - viewy), temp;
    int angle;
    if (dy > dx) { temp = dx; dx = dy; dy = temp; }
    if (!dx) return 1;
    angle = (tantoangle[FixedDiv(dy, dx)>>DBITS] + ANG90) >> ANGLETOFINESHIFT;
    return FixedDiv(dx, finesine[angle]);
}

static subsector_t *R_PointInSubsector(fixed_t x, fixed_t y)
{
    int nodenum = numnodes-1;
    while (!(nodenum & NF_SUBSECTOR)) { node_t *node = &nodes[nodenum]; nodenum = node->children[R_PointOnSide(x, y, node)]; }
    return &subsectors[nodenum & ~NF_SUBSECTOR];
}

// ---- r_draw ----
static lighttable_t *dc_colormap; static int dc_x, dc_yl, dc_yh; static fixed_t dc_iscale, dc_texturemid; static byte *dc_source;
static lighttable_t *ds_colormap; static int ds_y, ds_x1, ds_x2; static fixed_t ds_xfrac, ds_yfrac, ds_xstep, ds_ystep; static byte *ds_source;

static NOINLINE void R_DrawColumn(void)
{
    int count = dc_yh - dc_yl;
    byte *dest;
    fixed_t frac, fracstep;
    if (count < 0) return;
    if ((unsigned)dc_x >= SCREENWIDTH || dc_yl < 0 || dc_yh >= SCREENHEIGHT) I_Error("R_DrawColumn");
    detail_columns++;
    dest = ylookup[dc_yl] + columnofs[dc_x];
    fracstep = dc_iscale;
    frac = dc_texturemid + (dc_yl-centery)*fracstep;
    do { *dest = dc_colormap[dc_source[(frac>>FRACBITS)&63]]; dest += SCREENWIDTH; frac += fracstep; } while (count--);
}

static NOINLINE void R_DrawSpan(void)
{
    fixed_t xfrac = ds_xfrac, yfrac = ds_yfrac;
    byte *dest = ylookup[ds_y] + columnofs[ds_x1];
    int count = ds_x2 - ds_x1, spot;
    detail_spans++;
    do { spot = ((yfrac>>(16-6))&(63*64)) + ((xfrac>>16)&63); *dest++ = ds_colormap[ds_source[spot]]; xfrac += ds_xstep; yfrac += ds_ystep; } while (count--);
}

// ---- r_plane ----
#define MAXVISPLANES 256
#define MAXOPENINGS (SCREENWIDTH*64)
typedef struct { fixed_t height; int picnum, lightlevel, minx, maxx; byte pad1; byte top[SCREENWIDTH]; byte pad2, pad3; byte bottom[SCREENWIDTH]; byte pad4; } visplane_t;
static visplane_t visplanes[MAXVISPLANES], *lastvisplane, *floorplane, *ceilingplane;
static short openings[MAXOPENINGS], *lastopening, floorclip[SCREENWIDTH], ceilingclip[SCREENWIDTH], negonearray[SCREENWIDTH], screenheightarray[SCREENWIDTH];
static int spanstart[SCREENHEIGHT]; static lighttable_t **planezlight; static fixed_t planeheight, yslope[SCREENHEIGHT], distscale[SCREENWIDTH], basexscale, baseyscale, cachedheight[SCREENHEIGHT], cacheddistance[SCREENHEIGHT], cachedxstep[SCREENHEIGHT], cachedystep[SCREENHEIGHT];

static NOINLINE void R_ClearPlanes(void)
{
    angle_t angle = (viewangle-ANG90)>>ANGLETOFINESHIFT;
    for (int i = 0; i < SCREENWIDTH; i++) { floorclip[i] = SCREENHEIGHT; ceilingclip[i] = -1; }
    lastvisplane = visplanes; lastopening = openings;
    memset(cachedheight, 0, sizeof(cachedheight));
    basexscale = FixedDiv(finecosine[angle], centerxfrac); baseyscale = -FixedDiv(finesine[angle], centerxfrac);
}

static NOINLINE visplane_t *R_FindPlane(fixed_t height, int picnum, int lightlevel)
{
    visplane_t *check;
    for (check = visplanes; check < lastvisplane; check++)
        if (height == check->height && picnum == check->picnum && lightlevel == check->lightlevel) return check;
    if (lastvisplane - visplanes == MAXVISPLANES) I_Error("R_FindPlane: no more visplanes");
    lastvisplane++;
    check->height = height; check->picnum = picnum; check->lightlevel = lightlevel; check->minx = SCREENWIDTH; check->maxx = -1;
    memset(check->top, 0xff, sizeof(check->top));
    return check;
}

static NOINLINE visplane_t *R_CheckPlane(visplane_t *pl, int start, int stop)
{
    int intrl, intrh, unionl, unionh, x;
    if (start < pl->minx) { intrl = pl->minx; unionl = start; } else { unionl = pl->minx; intrl = start; }
    if (stop > pl->maxx) { intrh = pl->maxx; unionh = stop; } else { unionh = pl->maxx; intrh = stop; }
    for (x = intrl; x <= intrh; x++) if (pl->top[x] != 0xff) break;
    if (x > intrh) { pl->minx = unionl; pl->maxx = unionh; return pl; }
    if (lastvisplane - visplanes == MAXVISPLANES) I_Error("R_CheckPlane: no more visplanes");
    lastvisplane->height = pl->height; lastvisplane->picnum = pl->picnum; lastvisplane->lightlevel = pl->lightlevel;
    pl = lastvisplane++;
    pl->minx = start; pl->maxx = stop;
    memset(pl->top, 0xff, sizeof(pl->top));
    return pl;
}

static NOINLINE void R_MapPlane(int y, int x1, int x2)
{
    angle_t angle; fixed_t distance, length; unsigned index;
    if (planeheight != cachedheight[y]) {
        cachedheight[y] = planeheight;
        distance = cacheddistance[y] = FixedMul(planeheight, yslope[y]);
        ds_xstep = cachedxstep[y] = FixedMul(distance, basexscale);
        ds_ystep = cachedystep[y] = FixedMul(distance, baseyscale);
    } else { distance = cacheddistance[y]; ds_xstep = cachedxstep[y]; ds_ystep = cachedystep[y]; }
    length = FixedMul(distance, distscale[x1]);
    angle = (viewangle + xtoviewangle[x1])>>ANGLETOFINESHIFT;
    ds_xfrac = viewx + FixedMul(finecosine[angle], length);
    ds_yfrac = -viewy - FixedMul(finesine[angle], length);
    index = distance >> LIGHTZSHIFT;
    if (index >= MAXLIGHTZ) index = MAXLIGHTZ-1;
    ds_colormap = planezlight[index];
    ds_y = y; ds_x1 = x1; ds_x2 = x2;
    R_DrawSpan();
}

static void R_MakeSpans(int x, int t1, int b1, int t2, int b2)
{
    while (t1 < t2 && t1 <= b1) { R_MapPlane(t1, spanstart[t1], x-1); t1++; }
    while (b1 > b2 && b1 >= t1) { R_MapPlane(b1, spanstart[b1], x-1); b1--; }
    while (t2 < t1 && t2 <= b2) { spanstart[t2] = x; t2++; }
    while (b2 > b1 && b2 >= t2) { spanstart[b2] = x; b2--; }
}

static NOINLINE void R_DrawPlanes(void)
{
    visplane_t *pl;
    for (pl = visplanes; pl < lastvisplane; pl++) {
        int light, x, stop;
        byte *top = &pl->top[0], *bottom = &pl->bottom[0];
        if (pl->minx > pl->maxx) continue;
        ds_source = flats[pl->picnum];
        planeheight = abs(pl->height - viewz);
        light = pl->lightlevel >> LIGHTSEGSHIFT;
        planezlight = zlight[light >= LIGHTLEVELS ? LIGHTLEVELS-1 : light];
        top[pl->maxx+1] = 0xff; top[pl->minx-1] = 0xff; // pad1 .. pad3
        stop = pl->maxx + 1;
        for (x = pl->minx; x <= stop; x++) R_MakeSpans(x, top[x-1], bottom[x-1], top[x], bottom[x]);
    }
}

// ---- r_segs, r_bsp ----
#define MAXDRAWSEGS 512
#define SIL_BOTTOM 1
#define SIL_TOP 2
#define SIL_BOTH 3
typedef struct drawseg_s { seg_t *curline; int x1, x2; fixed_t scale1, scale2, scalestep; int silhouette; fixed_t bsilheight, tsilheight; short *sprtopclip, *sprbottomclip, *maskedtexturecol; } drawseg_t;
static drawseg_t drawsegs[MAXDRAWSEGS], *ds_p;
typedef struct { int first, last; } cliprange_t;
static cliprange_t solidsegs[64], *newend;
static seg_t *curline; static side_t *sidedef; static line_t *linedef; static sector_t *frontsector, *backsector;
static angle_t rw_normalangle, rw_angle1; static fixed_t rw_offset, rw_distance, rw_scale, rw_scalestep, rw_midtexturemid, rw_toptexturemid, rw_bottomtexturemid; static int rw_x, rw_stopx, rw_centerangle;
static boolean segtextured, markfloor, markceiling; static int toptexture, bottomtexture, midtexture, worldtop, worldbottom, worldhigh, worldlow; static fixed_t pixhigh, pixlow, pixhighstep, pixlowstep, topfrac, topstep, bottomfrac, bottomstep; static lighttable_t **walllights;
#define HEIGHTBITS 12
#define HEIGHTUNIT (1<<HEIGHTBITS)

static fixed_t R_ScaleFromGlobalAngle(angle_t visangle)
{
    angle_t anglea = ANG90 + (visangle-viewangle), angleb = ANG90 + (visangle-rw_normalangle);
    int sinea = finesine[anglea>>ANGLETOFINESHIFT], sineb = finesine[angleb>>ANGLETOFINESHIFT], den = FixedMul(rw_distance, sinea);
    fixed_t num = FixedMul(projection, sineb), scale;
    if (den > num>>16) { scale = FixedDiv(num, den); if (scale > 64*FRACUNIT) scale = 64*FRACUNIT; else if (scale < 256) scale = 256; }
    else scale = 64*FRACUNIT;
    return scale;
}

static inline byte *R_GetColumn(int tex, int col) { texture_t *t = textures[tex]; return t->composite + t->columnofs[col & (t->width-1)]; }

static NOINLINE void R_RenderSegLoop(void)
{
    int yl, yh, mid, top, bottom; fixed_t texturecolumn = 0;
    for (; rw_x < rw_stopx; rw_x++) {
        yl = (topfrac+HEIGHTUNIT-1)>>HEIGHTBITS;
        if (yl < ceilingclip[rw_x]+1) yl = ceilingclip[rw_x]+1;
        if (markceiling) {
            top = ceilingclip[rw_x]+1; bottom = yl-1;
            if (bottom >= floorclip[rw_x]) bottom = floorclip[rw_x]-1;
            if (top <= bottom) { ceilingplane->top[rw_x] = top; ceilingplane->bottom[rw_x] = bottom; }
        }
        yh = bottomfrac>>HEIGHTBITS;
        if (yh >= floorclip[rw_x]) yh = floorclip[rw_x]-1;
        if (markfloor) {
            top = yh+1; bottom = floorclip[rw_x]-1;
            if (top <= ceilingclip[rw_x]) top = ceilingclip[rw_x]+1;
            if (top <= bottom) { floorplane->top[rw_x] = top; floorplane->bottom[rw_x] = bottom; }
        }
        if (segtextured) {
            angle_t angle = ((rw_centerangle + xtoviewangle[rw_x])>>ANGLETOFINESHIFT) & (FINEANGLES/2-1); unsigned index;
            texturecolumn = (rw_offset - FixedMul(finetangent[angle], rw_distance)) >> FRACBITS;
            index = rw_scale>>LIGHTSCALESHIFT;
            if (index >= MAXLIGHTSCALE) index = MAXLIGHTSCALE-1;
            dc_colormap = walllights[index];
            dc_x = rw_x;
            dc_iscale = 0xffffffffu / (unsigned)rw_scale;
        }
        if (midtexture) {
            dc_yl = yl; dc_yh = yh; dc_texturemid = rw_midtexturemid; dc_source = R_GetColumn(midtexture, texturecolumn);
            R_DrawColumn();
            ceilingclip[rw_x] = SCREENHEIGHT; floorclip[rw_x] = -1;
        } else {
            if (toptexture) {
                mid = pixhigh>>HEIGHTBITS; pixhigh += pixhighstep;
                if (mid >= floorclip[rw_x]) mid = floorclip[rw_x]-1;
                if (mid >= yl) { dc_yl = yl; dc_yh = mid; dc_texturemid = rw_toptexturemid; dc_source = R_GetColumn(toptexture, texturecolumn); R_DrawColumn(); ceilingclip[rw_x] = mid; }
                else ceilingclip[rw_x] = yl-1;
            } else if (markceiling) ceilingclip[rw_x] = yl-1;
            if (bottomtexture) {
                mid = (pixlow+HEIGHTUNIT-1)>>HEIGHTBITS; pixlow += pixlowstep;
                if (mid <= ceilingclip[rw_x]) mid = ceilingclip[rw_x]+1;
                if (mid <= yh) { dc_yl = mid; dc_yh = yh; dc_texturemid = rw_bottomtexturemid; dc_source = R_GetColumn(bottomtexture, texturecolumn); R_DrawColumn(); floorclip[rw_x] = mid; }
                else floorclip[rw_x] = yh+1;
            } else if (markfloor) floorclip[rw_x] = yh+1;
        }
        rw_scale += rw_scalestep; topfrac += topstep; bottomfrac += bottomstep;
    }
}

static NOINLINE void R_StoreWallRange(int start, int stop)
{
    fixed_t hyp, sineval; angle_t distangle, offsetangle; int lightnum;
    if (ds_p == &drawsegs[MAXDRAWSEGS]) return;
    sidedef = curline->sidedef; linedef = curline->linedef;
    linedef->flags |= 256; // mapped
    rw_normalangle = curline->angle + ANG90;
    offsetangle = abs((int)(rw_normalangle-rw_angle1));
    if (offsetangle > ANG90) offsetangle = ANG90;
    distangle = ANG90 - offsetangle;
    hyp = R_PointToDist(curline->v1->x, curline->v1->y);
    sineval = finesine[distangle>>ANGLETOFINESHIFT];
    rw_distance = FixedMul(hyp, sineval);
    ds_p->x1 = rw_x = start; ds_p->x2 = stop; ds_p->curline = curline; rw_stopx = stop+1;
    ds_p->scale1 = rw_scale = R_ScaleFromGlobalAngle(viewangle + xtoviewangle[start]);
    if (stop > start) { ds_p->scale2 = R_ScaleFromGlobalAngle(viewangle + xtoviewangle[stop]); ds_p->scalestep = rw_scalestep = (ds_p->scale2 - rw_scale) / (stop-start); }
    else { ds_p->scale2 = ds_p->scale1; rw_scalestep = 0; }
    worldtop = frontsector->ceilingheight - viewz; worldbottom = frontsector->floorheight - viewz;
    midtexture = toptexture = bottomtexture = 0;
    ds_p->maskedtexturecol = NULL;
    if (!backsector) {
        midtexture = sidedef->midtexture; markfloor = markceiling = true;
        rw_midtexturemid = worldtop + sidedef->rowoffset;
        ds_p->silhouette = SIL_BOTH; ds_p->sprtopclip = screenheightarray; ds_p->sprbottomclip = negonearray; ds_p->bsilheight = MAXINT; ds_p->tsilheight = MININT;
    } else {
        ds_p->sprtopclip = ds_p->sprbottomclip = NULL; ds_p->silhouette = 0;
        if (frontsector->floorheight > backsector->floorheight) { ds_p->silhouette = SIL_BOTTOM; ds_p->bsilheight = frontsector->floorheight; }
        else if (backsector->floorheight > viewz) { ds_p->silhouette = SIL_BOTTOM; ds_p->bsilheight = MAXINT; }
        if (frontsector->ceilingheight < backsector->ceilingheight) { ds_p->silhouette |= SIL_TOP; ds_p->tsilheight = frontsector->ceilingheight; }
        else if (backsector->ceilingheight < viewz) { ds_p->silhouette |= SIL_TOP; ds_p->tsilheight = MININT; }
        worldhigh = backsector->ceilingheight - viewz; worldlow = backsector->floorheight - viewz;
        markfloor = worldlow != worldbottom || backsector->floorpic != frontsector->floorpic || backsector->lightlevel != frontsector->lightlevel;
        markceiling = worldhigh != worldtop || backsector->ceilingpic != frontsector->ceilingpic || backsector->lightlevel != frontsector->lightlevel;
        if (worldhigh < worldtop) { toptexture = sidedef->toptexture; rw_toptexturemid = backsector->ceilingheight + textureheight[toptexture] - viewz + sidedef->rowoffset; }
        if (worldlow > worldbottom) { bottomtexture = sidedef->bottomtexture; rw_bottomtexturemid = worldlow + sidedef->rowoffset; }
    }
    segtextured = (midtexture | toptexture | bottomtexture) != 0;
    if (segtextured) {
        offsetangle = rw_normalangle-rw_angle1;
        if (offsetangle > ANG180) offsetangle = -offsetangle;
        if (offsetangle > ANG90) offsetangle = ANG90;
        rw_offset = FixedMul(hyp, finesine[offsetangle>>ANGLETOFINESHIFT]);
        if (rw_normalangle-rw_angle1 < ANG180) rw_offset = -rw_offset;
        rw_offset += sidedef->textureoffset + curline->offset;
        rw_centerangle = ANG90 + viewangle - rw_normalangle;
        lightnum = frontsector->lightlevel >> LIGHTSEGSHIFT;
        if (curline->v1->y == curline->v2->y) lightnum--; else if (curline->v1->x == curline->v2->x) lightnum++;
        walllights = scalelight[lightnum < 0 ? 0 : lightnum >= LIGHTLEVELS ? LIGHTLEVELS-1 : lightnum];
    }
    if (frontsector->floorheight >= viewz) markfloor = false;
    if (frontsector->ceilingheight <= viewz) markceiling = false;
    worldtop >>= 4; worldbottom >>= 4;
    topstep = -FixedMul(rw_scalestep, worldtop); topfrac = (centeryfrac>>4) - FixedMul(worldtop, rw_scale);
    bottomstep = -FixedMul(rw_scalestep, worldbottom); bottomfrac = (centeryfrac>>4) - FixedMul(worldbottom, rw_scale);
    if (backsector) {
        worldhigh >>= 4; worldlow >>= 4;
        if (worldhigh < worldtop) { pixhigh = (centeryfrac>>4) - FixedMul(worldhigh, rw_scale); pixhighstep = -FixedMul(rw_scalestep, worldhigh); }
        if (worldlow > worldbottom) { pixlow = (centeryfrac>>4) - FixedMul(worldlow, rw_scale); pixlowstep = -FixedMul(rw_scalestep, worldlow); }
    }
    if (markceiling && ceilingplane) ceilingplane = R_CheckPlane(ceilingplane, rw_x, rw_stopx-1); else markceiling = false;
    if (markfloor && floorplane) floorplane = R_CheckPlane(floorplane, rw_x, rw_stopx-1); else markfloor = false;
    R_RenderSegLoop();
    if (lastopening + 2*(rw_stopx-start) > openings + MAXOPENINGS) I_Error("R_StoreWallRange: openings");
    if ((ds_p->silhouette & SIL_TOP) && !ds_p->sprtopclip) { memcpy(lastopening, ceilingclip+start, 2*(rw_stopx-start)); ds_p->sprtopclip = lastopening - start; lastopening += rw_stopx - start; }
    if ((ds_p->silhouette & SIL_BOTTOM) && !ds_p->sprbottomclip) { memcpy(lastopening, floorclip+start, 2*(rw_stopx-start)); ds_p->sprbottomclip = lastopening - start; lastopening += rw_stopx - start; }
    ds_p++;
}

static NOINLINE void R_ClipSolidWallSegment(int first, int last)
{
    cliprange_t *next, *start = solidsegs;
    while (start->last < first-1) start++;
    if (first < start->first) {
        if (last < start->first-1) {
            R_StoreWallRange(first, last);
            next = newend++;
            while (next != start) { *next = *(next-1); next--; }
            next->first = first; next->last = last;
            return;
        }
        R_StoreWallRange(first, start->first-1);
        start->first = first;
    }
    if (last <= start->last) return;
    next = start;
    while (last >= (next+1)->first-1) {
        R_StoreWallRange(next->last+1, (next+1)->first-1);
        next++;
        if (last <= next->last) { start->last = next->last; goto crunch; }
    }
    R_StoreWallRange(next->last+1, last);
    start->last = last;
crunch:
    if (next == start) return;
    while (next++ != newend) *++start = *next;
    newend = start+1;
}

static NOINLINE void R_ClipPassWallSegment(int first, int last)
{
    cliprange_t *start = solidsegs;
    while (start->last < first-1) start++;
    if (first < start->first) {
        if (last < start->first-1) { R_StoreWallRange(first, last); return; }
        R_StoreWallRange(first, start->first-1);
    }
    if (last <= start->last) return;
    while (last >= (start+1)->first-1) {
        R_StoreWallRange(start->last+1, (start+1)->first-1);
        start++;
        if (last <= start->last) return;
    }
    R_StoreWallRange(start->last+1, last);
}

static int R_ClipAngles(angle_t angle1, angle_t angle2, int *x1, int *x2)
{
    angle_t span = angle1 - angle2, tspan;
    angle1 -= viewangle; angle2 -= viewangle;
    tspan = angle1 + clipangle;
    if (tspan > 2*clipangle) { tspan -= 2*clipangle; if (tspan >= span) return 0; angle1 = clipangle; }
    tspan = clipangle - angle2;
    if (tspan > 2*clipangle) { tspan -= 2*clipangle; if (tspan >= span) return 0; angle2 = -clipangle; }
    *x1 = viewangletox[(angle1+ANG90)>>ANGLETOFINESHIFT]; *x2 = viewangletox[(angle2+ANG90)>>ANGLETOFINESHIFT];
    return *x1 != *x2;
}

static NOINLINE void R_AddLine(seg_t *line)
{
    int x1, x2; angle_t angle1, angle2;
    curline = line;
    angle1 = R_PointToAngle(line->v1->x, line->v1->y); angle2 = R_PointToAngle(line->v2->x, line->v2->y);
    if (angle1 - angle2 >= ANG180) return;
    rw_angle1 = angle1;
    if (!R_ClipAngles(angle1, angle2, &x1, &x2)) return;
    backsector = line->backsector;
    if (!backsector || backsector->ceilingheight <= frontsector->floorheight || backsector->floorheight >= frontsector->ceilingheight) { R_ClipSolidWallSegment(x1, x2-1); return; }
    if (backsector->ceilingheight != frontsector->ceilingheight || backsector->floorheight != frontsector->floorheight) { R_ClipPassWallSegment(x1, x2-1); return; }
    if (backsector->ceilingpic == frontsector->ceilingpic && backsector->floorpic == frontsector->floorpic && backsector->lightlevel == frontsector->lightlevel) return;
    R_ClipPassWallSegment(x1, x2-1);
}

static const int checkcoord[12][4] = { {3,0,2,1}, {3,0,2,0}, {3,1,2,0}, {0}, {2,0,2,1}, {0,0,0,0}, {3,1,3,0}, {0}, {2,0,3,1}, {2,1,3,1}, {2,1,3,0} };
static NOINLINE boolean R_CheckBBox(fixed_t *bspcoord)
{
    int boxx = viewx <= bspcoord[BOXLEFT] ? 0 : viewx < bspcoord[BOXRIGHT] ? 1 : 2, boxy = viewy >= bspcoord[BOXTOP] ? 0 : viewy > bspcoord[BOXBOTTOM] ? 1 : 2, boxpos = (boxy<<2)+boxx, sx1, sx2;
    angle_t angle1, angle2; cliprange_t *start;
    if (boxpos == 5) return true;
    angle1 = R_PointToAngle(bspcoord[checkcoord[boxpos][0]], bspcoord[checkcoord[boxpos][1]]); angle2 = R_PointToAngle(bspcoord[checkcoord[boxpos][2]], bspcoord[checkcoord[boxpos][3]]);
    if (angle1 - angle2 >= ANG180) return true;
    if (!R_ClipAngles(angle1, angle2, &sx1, &sx2)) return false;
    sx2--;
    start = solidsegs;
    while (start->last < sx2) start++;
    return !(sx1 >= start->first && sx2 <= start->last);
}

// ---- r_things ----
#define MAXVISSPRITES 128
typedef struct vissprite_s { struct vissprite_s *prev, *next; int x1, x2; fixed_t gx, gy, gz, gzt, startfrac, scale, xiscale, texturemid; int patch; lighttable_t *colormap; int mobjflags; } vissprite_t;
static vissprite_t vissprites[MAXVISSPRITES], *vissprite_p, vsprsortedhead;
static short clipbot[SCREENWIDTH], cliptop[SCREENWIDTH], *mfloorclip, *mceilingclip;
static fixed_t spryscale, sprtopscreen; static lighttable_t **spritelights;

static NOINLINE void R_ProjectSprite(mobj_t *thing)
{
    fixed_t tr_x = thing->x - viewx, tr_y = thing->y - viewy, gxt = FixedMul(tr_x, viewcos), gyt = -FixedMul(tr_y, viewsin), tz = gxt - gyt, tx, xscale;
    int x1, x2, index; vissprite_t *vis; patch_t *patch;
    if (tz < 4*FRACUNIT) return;
    xscale = FixedDiv(projection, tz);
    gxt = -FixedMul(tr_x, viewsin); gyt = FixedMul(tr_y, viewcos); tx = -(gyt+gxt);
    if (abs(tx) > (tz<<2)) return;
    patch = spritepatches[(thing->sprite*8 + thing->frame) & 15];
    tx -= patch->leftoffset<<FRACBITS;
    x1 = (centerxfrac + FixedMul(tx, xscale))>>FRACBITS;
    if (x1 > SCREENWIDTH) return;
    tx += patch->width<<FRACBITS;
    x2 = ((centerxfrac + FixedMul(tx, xscale))>>FRACBITS) - 1;
    if (x2 < 0 || vissprite_p == &vissprites[MAXVISSPRITES]) return;
    vis = vissprite_p++;
    vis->mobjflags = thing->flags; vis->scale = xscale; vis->gx = thing->x; vis->gy = thing->y; vis->gz = thing->z; vis->gzt = thing->z + (patch->topoffset<<FRACBITS);
    vis->texturemid = vis->gzt - viewz; vis->x1 = x1 < 0 ? 0 : x1; vis->x2 = x2 >= SCREENWIDTH ? SCREENWIDTH-1 : x2;
    vis->xiscale = FixedDiv(FRACUNIT, xscale); vis->startfrac = 0;
    if (vis->x1 > x1) vis->startfrac += vis->xiscale*(vis->x1-x1);
    vis->patch = (thing->sprite*8 + thing->frame) & 15;
    index = xscale>>LIGHTSCALESHIFT;
    vis->colormap = spritelights[index >= MAXLIGHTSCALE ? MAXLIGHTSCALE-1 : index];
}

static void R_AddSprites(sector_t *sec)
{
    int lightnum = sec->lightlevel >> LIGHTSEGSHIFT;
    if (sec->validcount == validcount) return;
    sec->validcount = validcount;
    spritelights = scalelight[lightnum >= LIGHTLEVELS ? LIGHTLEVELS-1 : lightnum];
    for (mobj_t *thing = sec->thinglist; thing; thing = thing->snext) if (!thing->player) R_ProjectSprite(thing);
}

static void R_DrawMaskedColumn(post_t *column)
{
    fixed_t basetexturemid = dc_texturemid;
    for (; column->topdelta != 0xff;) {
        int topscreen = sprtopscreen + spryscale*column->topdelta, bottomscreen = topscreen + spryscale*column->length;
        dc_yl = (topscreen+FRACUNIT-1)>>FRACBITS; dc_yh = (bottomscreen-1)>>FRACBITS;
        if (dc_yh >= mfloorclip[dc_x]) dc_yh = mfloorclip[dc_x]-1;
        if (dc_yl <= mceilingclip[dc_x]) dc_yl = mceilingclip[dc_x]+1;
        if (dc_yl <= dc_yh) { dc_source = (byte *)column + 3; dc_texturemid = basetexturemid - (column->topdelta<<FRACBITS); R_DrawColumn(); }
        column = (post_t *)((byte *)column + column->length + 4);
    }
    dc_texturemid = basetexturemid;
}

static NOINLINE void R_DrawSprite(vissprite_t *spr)
{
    drawseg_t *ds; int x, r1, r2, silhouette; fixed_t frac; patch_t *patch = spritepatches[spr->patch];
    for (x = spr->x1; x <= spr->x2; x++) clipbot[x] = cliptop[x] = -2;
    for (ds = ds_p-1; ds >= drawsegs; ds--) {
        if (ds->x1 > spr->x2 || ds->x2 < spr->x1 || !ds->silhouette) continue;
        r1 = ds->x1 < spr->x1 ? spr->x1 : ds->x1; r2 = ds->x2 > spr->x2 ? spr->x2 : ds->x2;
        if ((ds->scale1 > ds->scale2 ? ds->scale1 : ds->scale2) < spr->scale) continue;
        if ((ds->scale1 > ds->scale2 ? ds->scale2 : ds->scale1) < spr->scale) {
            line_t *l = ds->curline->linedef; // nearer in part: which side of the line?
            if (FixedMul(spr->gy - l->v1->y, l->dx>>FRACBITS) < FixedMul(l->dy>>FRACBITS, spr->gx - l->v1->x)) continue;
        }
        silhouette = ds->silhouette;
        if (spr->gz >= ds->bsilheight) silhouette &= ~SIL_BOTTOM;
        if (spr->gzt <= ds->tsilheight) silhouette &= ~SIL_TOP;
        if (silhouette & SIL_BOTTOM) for (x = r1; x <= r2; x++) if (clipbot[x] == -2) clipbot[x] = ds->sprbottomclip[x];
        if (silhouette & SIL_TOP) for (x = r1; x <= r2; x++) if (cliptop[x] == -2) cliptop[x] = ds->sprtopclip[x];
    }
    for (x = spr->x1; x <= spr->x2; x++) { if (clipbot[x] == -2) clipbot[x] = SCREENHEIGHT; if (cliptop[x] == -2) cliptop[x] = -1; }
    mfloorclip = clipbot; mceilingclip = cliptop;
    dc_colormap = spr->colormap; dc_iscale = abs(spr->xiscale); dc_texturemid = spr->texturemid;
    frac = spr->startfrac; spryscale = spr->scale; sprtopscreen = centeryfrac - FixedMul(dc_texturemid, spryscale);
    if (spryscale > 40*FRACUNIT) return;
    for (dc_x = spr->x1; dc_x <= spr->x2; dc_x++, frac += spr->xiscale) {
        int texturecolumn = frac>>FRACBITS;
        if (texturecolumn < 0 || texturecolumn >= patch->width) texturecolumn = patch->width-1;
        R_DrawMaskedColumn((post_t *)((byte *)patch + patch->columnofs[texturecolumn]));
    }
}

static NOINLINE void R_SortVisSprites(void)
{
    int count = vissprite_p - vissprites; vissprite_t *ds, *best = NULL; static vissprite_t unsorted;
    unsorted.next = unsorted.prev = &unsorted;
    vsprsortedhead.next = vsprsortedhead.prev = &vsprsortedhead;
    if (!count) return;
    for (ds = vissprites; ds < vissprite_p; ds++) { ds->next = ds+1; ds->prev = ds-1; }
    vissprites[0].prev = &unsorted; unsorted.next = &vissprites[0]; (vissprite_p-1)->next = &unsorted; unsorted.prev = vissprite_p-1;
    for (int i = 0; i < count; i++) {
        fixed_t bestscale = MAXINT;
        for (ds = unsorted.next; ds != &unsorted; ds = ds->next) if (ds->scale < bestscale) { bestscale = ds->scale; best = ds; }
        best->next->prev = best->prev; best->prev->next = best->next;
        best->next = &vsprsortedhead; best->prev = vsprsortedhead.prev; vsprsortedhead.prev->next = best; vsprsortedhead.prev = best;
    }
}

static NOINLINE void R_Subsector(int num)
{
    subsector_t *sub = &subsectors[num]; int count = sub->numlines; seg_t *line = &segs[sub->firstline];
    frontsector = sub->sector;
    floorplane = frontsector->floorheight < viewz ? R_FindPlane(frontsector->floorheight, frontsector->floorpic, frontsector->lightlevel) : NULL;
    ceilingplane = frontsector->ceilingheight > viewz ? R_FindPlane(frontsector->ceilingheight, frontsector->ceilingpic, frontsector->lightlevel) : NULL;
    R_AddSprites(frontsector);
    while (count--) R_AddLine(line++);
}

static void R_RenderBSPNode(int bspnum)
{
    node_t *bsp; int side;
    if (bspnum & NF_SUBSECTOR) { R_Subsector(bspnum & ~NF_SUBSECTOR); return; }
    bsp = &nodes[bspnum];
    side = R_PointOnSide(viewx, viewy, bsp);
    R_RenderBSPNode(bsp->children[side]);
    if (R_CheckBBox(bsp->bbox[side^1])) R_RenderBSPNode(bsp->children[side^1]);
}

static NOINLINE void R_RenderPlayerView(player_t *player)
{
    viewx = player->mo->x; viewy = player->mo->y; viewangle = player->mo->angle; viewz = player->viewz;
    viewsin = finesine[viewangle>>ANGLETOFINESHIFT]; viewcos = finecosine[viewangle>>ANGLETOFINESHIFT];
    validcount++;
    solidsegs[0].first = -0x7fffffff; solidsegs[0].last = -1; solidsegs[1].first = SCREENWIDTH; solidsegs[1].last = 0x7fffffff; newend = solidsegs+2;
    ds_p = drawsegs; vissprite_p = vissprites;
    R_ClearPlanes();
    R_RenderBSPNode(numnodes-1);
    R_DrawPlanes();
    R_SortVisSprites();
    for (vissprite_t *spr = vsprsortedhead.next; spr != &vsprsortedhead; spr = spr->next) R_DrawSprite(spr);
}

// ---- p_map ----
static fixed_t tmbbox[4], tmx, tmy, tmfloorz, tmceilingz, tmdropoffz, opentop, openbottom; static mobj_t *tmthing; static int tmflags;
static line_t *spechit[8]; static int numspechit;
#define MAPBLOCKSHIFT (FRACBITS+7)

static void P_UnsetThingPosition(mobj_t *thing)
{
    if (thing->snext) thing->snext->sprev = thing->sprev;
    if (thing->sprev) thing->sprev->snext = thing->snext; else thing->subsector->sector->thinglist = thing->snext;
    if (!(thing->flags & MF_NOBLOCKMAP)) {
        if (thing->bnext) thing->bnext->bprev = thing->bprev;
        if (thing->bprev) thing->bprev->bnext = thing->bnext;
        else blocklinks[((thing->y-bmaporgy)>>MAPBLOCKSHIFT)*bmapwidth + ((thing->x-bmaporgx)>>MAPBLOCKSHIFT)] = thing->bnext;
    }
}

static void P_SetThingPosition(mobj_t *thing)
{
    subsector_t *ss = R_PointInSubsector(thing->x, thing->y); sector_t *sec = ss->sector;
    thing->subsector = ss; thing->sprev = NULL; thing->snext = sec->thinglist;
    if (sec->thinglist) sec->thinglist->sprev = thing;
    sec->thinglist = thing;
    if (!(thing->flags & MF_NOBLOCKMAP)) {
        mobj_t **link = &blocklinks[((thing->y-bmaporgy)>>MAPBLOCKSHIFT)*bmapwidth + ((thing->x-bmaporgx)>>MAPBLOCKSHIFT)];
        thing->bprev = NULL; thing->bnext = *link;
        if (*link) (*link)->bprev = thing;
        *link = thing;
    }
}

static NOINLINE boolean P_BlockLinesIterator(int x, int y, boolean (*func)(line_t *))
{
    short *list; line_t *ld;
    if (x < 0 || y < 0 || x >= bmapwidth || y >= bmapheight) return true;
    for (list = blockmaplump + blockmap[y*bmapwidth+x]; *list != -1; list++) {
        ld = &lines[*list];
        if (ld->validcount == validcount) continue;
        ld->validcount = validcount;
        if (!func(ld)) return false;
    }
    return true;
}

static NOINLINE boolean P_BlockThingsIterator(int x, int y, boolean (*func)(mobj_t *))
{
    if (x < 0 || y < 0 || x >= bmapwidth || y >= bmapheight) return true;
    for (mobj_t *mobj = blocklinks[y*bmapwidth+x]; mobj; mobj = mobj->bnext) if (!func(mobj)) return false;
    return true;
}

static void P_LineOpening(line_t *ld)
{
    sector_t *front = ld->frontsector, *back = ld->backsector;
    opentop = front->ceilingheight < back->ceilingheight ? front->ceilingheight : back->ceilingheight;
    openbottom = front->floorheight > back->floorheight ? front->floorheight : back->floorheight;
}

static boolean PIT_CheckLine(line_t *ld)
{
    if (tmbbox[BOXRIGHT] <= ld->bbox[BOXLEFT] || tmbbox[BOXLEFT] >= ld->bbox[BOXRIGHT] || tmbbox[BOXTOP] <= ld->bbox[BOXBOTTOM] || tmbbox[BOXBOTTOM] >= ld->bbox[BOXTOP]) return true;
    if (!ld->backsector) return false;
    if (!(tmthing->flags & MF_MISSILE) && (ld->flags & ML_BLOCKING)) return false;
    P_LineOpening(ld);
    if (opentop < tmceilingz) tmceilingz = opentop;
    if (openbottom > tmfloorz) tmfloorz = openbottom;
    if (ld->special && numspechit < 8) spechit[numspechit++] = ld;
    return true;
}

static void P_SetMobjState(mobj_t *mobj, statenum_t state);
static void P_DamageMobj(mobj_t *target, mobj_t *source, int damage)
{
    if (!(target->flags & MF_SHOOTABLE) || target->health <= 0) return;
    if (target->player) { target->player->damagecount += damage; return; }
    target->health -= damage;
    if (target->health <= 0) { target->flags &= ~(MF_SHOOTABLE|MF_SOLID); level.kills++; P_SetMobjState(target, target->info->deathstate); return; }
    if (P_Random() < target->info->painchance) P_SetMobjState(target, target->info->painstate);
    if (source && source != target) target->target = source;
}

static boolean PIT_CheckThing(mobj_t *thing)
{
    fixed_t blockdist = thing->radius + tmthing->radius;
    if (!(thing->flags & (MF_SOLID|MF_SHOOTABLE)) || abs(thing->x - tmx) >= blockdist || abs(thing->y - tmy) >= blockdist || thing == tmthing) return true;
    if (tmthing->flags & MF_MISSILE) {
        if (tmthing->z > thing->z + thing->height || tmthing->z + tmthing->height < thing->z || tmthing->target == thing) return true;
        P_DamageMobj(thing, tmthing->target, ((P_Random()&7)+1)*tmthing->info->damage);
        return false;
    }
    return !(thing->flags & MF_SOLID);
}

static NOINLINE boolean P_CheckPosition(mobj_t *thing, fixed_t x, fixed_t y)
{
    int xl, xh, yl, yh, bx, by; subsector_t *newsubsec;
    tmthing = thing; tmflags = thing->flags; tmx = x; tmy = y;
    tmbbox[BOXTOP] = y + thing->radius; tmbbox[BOXBOTTOM] = y - thing->radius; tmbbox[BOXRIGHT] = x + thing->radius; tmbbox[BOXLEFT] = x - thing->radius;
    newsubsec = R_PointInSubsector(x, y);
    tmfloorz = tmdropoffz = newsubsec->sector->floorheight; tmceilingz = newsubsec->sector->ceilingheight;
    validcount++; numspechit = 0;
    xl = (tmbbox[BOXLEFT] - bmaporgx - 32*FRACUNIT)>>MAPBLOCKSHIFT; xh = (tmbbox[BOXRIGHT] - bmaporgx + 32*FRACUNIT)>>MAPBLOCKSHIFT;
    yl = (tmbbox[BOXBOTTOM] - bmaporgy - 32*FRACUNIT)>>MAPBLOCKSHIFT; yh = (tmbbox[BOXTOP] - bmaporgy + 32*FRACUNIT)>>MAPBLOCKSHIFT;
    for (bx = xl; bx <= xh; bx++) for (by = yl; by <= yh; by++) if (!P_BlockThingsIterator(bx, by, PIT_CheckThing)) return false;
    for (bx = xl; bx <= xh; bx++) for (by = yl; by <= yh; by++) if (!P_BlockLinesIterator(bx, by, PIT_CheckLine)) return false;
    return true;
}

static boolean P_TryMove(mobj_t *thing, fixed_t x, fixed_t y)
{
    if (!P_CheckPosition(thing, x, y) || tmceilingz - tmfloorz < thing->height || tmceilingz - thing->z < thing->height || tmfloorz - thing->z > 24*FRACUNIT) { level.blocked++; return false; }
    P_UnsetThingPosition(thing);
    thing->floorz = tmfloorz; thing->ceilingz = tmceilingz; thing->x = x; thing->y = y;
    P_SetThingPosition(thing);
    level.moves++;
    return true;
}

// ---- p_mobj ----
static void P_MobjThinker(void *);
static void P_AddThinker(thinker_t *thinker) { thinkercap.prev->next = thinker; thinker->next = &thinkercap; thinker->prev = thinkercap.prev; thinkercap.prev = thinker; }
static void P_RemoveThinker(thinker_t *thinker) { thinker->function.acv = (actionf_v)(intptr_t)-1; }

static mobj_t *P_SpawnMobj(fixed_t x, fixed_t y, fixed_t z, mobjtype_t type)
{
    mobj_t *mobj = Z_Malloc(mobj_t, PU_LEVEL, NULL); mobjinfo_t *info = &mobjinfo[type]; state_t *st = &states[info->spawnstate];
    memset(mobj, 0, sizeof(*mobj));
    mobj->type = type; mobj->info = info; mobj->x = x; mobj->y = y; mobj->radius = info->radius; mobj->height = info->height; mobj->flags = info->flags; mobj->health = info->spawnhealth; mobj->reactiontime = info->reactiontime; mobj->lastlook = P_Random() % 4;
    mobj->state = st; mobj->tics = st->tics; mobj->sprite = st->sprite; mobj->frame = st->frame;
    P_SetThingPosition(mobj);
    mobj->floorz = mobj->subsector->sector->floorheight; mobj->ceilingz = mobj->subsector->sector->ceilingheight;
    mobj->z = z == MININT ? mobj->floorz : z;
    mobj->thinker.function.acp1 = P_MobjThinker;
    P_AddThinker(&mobj->thinker);
    return mobj;
}

static void P_RemoveMobj(mobj_t *mobj) { P_UnsetThingPosition(mobj); P_RemoveThinker(&mobj->thinker); }

static void P_SetMobjState(mobj_t *mobj, statenum_t state)
{
    state_t *st;
    do {
        if (state == S_NULL) { mobj->state = NULL; P_RemoveMobj(mobj); return; }
        st = &states[state];
        mobj->state = st; mobj->tics = st->tics; mobj->sprite = st->sprite; mobj->frame = st->frame;
        if (st->action.acp1) st->action.acp1(mobj);
        state = st->nextstate;
    } while (!mobj->tics);
}

static void P_ExplodeMissile(mobj_t *mo) { mo->momx = mo->momy = mo->momz = 0; mo->flags &= ~MF_MISSILE; P_SetMobjState(mo, mo->info->deathstate); }

static void P_MobjThinker(void *p)
{
    mobj_t *mobj = p;
    if (mobj->momx || mobj->momy) {
        if (!P_TryMove(mobj, mobj->x + mobj->momx, mobj->y + mobj->momy)) { if (mobj->flags & MF_MISSILE) { P_ExplodeMissile(mobj); return; } mobj->momx = mobj->momy = 0; }
        else if (!(mobj->flags & MF_MISSILE)) { mobj->momx = FixedMul(mobj->momx, 0xe800); mobj->momy = FixedMul(mobj->momy, 0xe800); if (abs(mobj->momx) < 0x1000 && abs(mobj->momy) < 0x1000) mobj->momx = mobj->momy = 0; }
    }
    if (!(mobj->flags & MF_MISSILE) && mobj->type != MT_TROOPSHOT) {
        mobj->z += mobj->momz;
        if (mobj->z <= mobj->floorz) { mobj->z = mobj->floorz; mobj->momz = 0; } else mobj->momz -= FRACUNIT;
    }
    if (mobj->tics != -1 && !--mobj->tics) P_SetMobjState(mobj, mobj->state->nextstate);
}

// ---- p_enemy ----
static const fixed_t xspeed[8] = { FRACUNIT, 47000, 0, -47000, -FRACUNIT, -47000, 0, 47000 }, yspeed[8] = { 0, 47000, FRACUNIT, 47000, 0, -47000, -FRACUNIT, -47000 };

static void P_RecursiveSound(sector_t *sec, int soundblocks, mobj_t *emmiter)
{
    if (sec->validcount == validcount && sec->soundtraversed <= soundblocks+1) return;
    sec->validcount = validcount; sec->soundtraversed = soundblocks+1; sec->soundtarget = emmiter; level.heard++;
    if (soundblocks > 4) return;
    for (int i = 0; i < sec->linecount; i++) {
        line_t *check = sec->lines[i];
        if (!(check->flags & ML_TWOSIDED)) continue;
        P_LineOpening(check);
        if (opentop <= openbottom) continue;
        P_RecursiveSound(sides[check->sidenum[0]].sector == sec ? sides[check->sidenum[1]].sector : sides[check->sidenum[0]].sector, soundblocks+1, emmiter);
    }
}

static void A_Look(void *p)
{
    mobj_t *actor = p, *targ = actor->subsector->sector->soundtarget;
    if (!targ || !(targ->flags & MF_SHOOTABLE)) return;
    actor->target = targ;
    P_SetMobjState(actor, actor->info->seestate);
}

static void A_FaceTarget(void *p) { mobj_t *actor = p; if (actor->target) actor->angle = R_PointToAngle2(actor->x, actor->y, actor->target->x, actor->target->y); }

static boolean P_Move(mobj_t *actor) { return P_TryMove(actor, actor->x + actor->info->speed*xspeed[actor->movedir], actor->y + actor->info->speed*yspeed[actor->movedir]); }

static void A_Chase(void *p)
{
    mobj_t *actor = p;
    if (actor->reactiontime) actor->reactiontime--;
    if (!actor->target || actor->target->health <= 0) { actor->target = players[0].mo; }
    if (P_Random() < 20 && actor->reactiontime == 0) { actor->reactiontime = actor->info->reactiontime; P_SetMobjState(actor, actor->info->missilestate); return; }
    if (--actor->movecount < 0 || !P_Move(actor)) {
        fixed_t deltax = actor->target->x - actor->x, deltay = actor->target->y - actor->y; int dir = deltay > 0 ? (deltax > 0 ? 1 : 3) : (deltax > 0 ? 7 : 5);
        if (P_Random() > 160) dir = P_Random() & 7;
        for (int i = 0; i < 8; i++) { actor->movedir = (dir + (i&1 ? -(i+1)/2 : i/2)) & 7; if (P_Move(actor)) break; }
        actor->movecount = P_Random() & 15;
    }
}

static void A_TroopAttack(void *p)
{
    mobj_t *actor = p, *th; angle_t an; int dist;
    if (!actor->target) return;
    A_FaceTarget(actor);
    an = actor->angle + ((P_Random()-P_Random())<<20);
    th = P_SpawnMobj(actor->x, actor->y, actor->z + 32*FRACUNIT, MT_TROOPSHOT);
    th->target = actor; th->angle = an; an >>= ANGLETOFINESHIFT;
    th->momx = FixedMul(th->info->speed, finecosine[an]); th->momy = FixedMul(th->info->speed, finesine[an]);
    dist = (abs(actor->target->x - actor->x) + abs(actor->target->y - actor->y)) / th->info->speed;
    th->momz = (actor->target->z - actor->z) / (dist < 1 ? 1 : dist);
    level.shots++;
}

static void A_Fall(void *p) { mobj_t *actor = p; actor->flags |= MF_CORPSE; actor->height >>= 2; }

static NOINLINE void P_ThingHeightClip(sector_t *sec)
{
    for (mobj_t *m = sec->thinglist; m; m = m->snext) { boolean onfloor = m->z == m->floorz; m->floorz = sec->floorheight; if (onfloor || m->z < m->floorz) m->z = m->floorz; }
}

static void T_PlatRaise(void *p)
{
    plat_t *plat = p; sector_t *sec = plat->sector;
    switch (plat->status) {
    case 0: sec->floorheight += plat->speed; if (sec->floorheight >= plat->high) { sec->floorheight = plat->high; plat->status = 2; plat->count = plat->wait; } break;
    case 1: sec->floorheight -= plat->speed; if (sec->floorheight <= plat->low) { sec->floorheight = plat->low; plat->status = 2; plat->count = plat->wait; } break;
    default: if (!--plat->count) plat->status = sec->floorheight == plat->low ? 0 : 1; return;
    }
    level.floors++;
    P_ThingHeightClip(sec);
}

static void T_FireFlicker(void *p)
{
    fireflicker_t *flick = p; int amount;
    if (--flick->count) return;
    amount = (P_Random()&3)*16;
    flick->sector->lightlevel = flick->sector->lightlevel - amount < flick->minlight ? flick->minlight : flick->maxlight - amount;
    flick->count = 4;
}

static NOINLINE void P_RunThinkers(void)
{
    thinker_t *currentthinker = thinkercap.next, *next;
    while (currentthinker != &thinkercap) {
        next = currentthinker->next;
        if (currentthinker->function.acv == (actionf_v)(intptr_t)-1) {
            next->prev = currentthinker->prev; currentthinker->prev->next = next;
            Z_Free(currentthinker);
        } else if (currentthinker->function.acp1) { currentthinker->function.acp1(currentthinker); next = currentthinker->next; }
        currentthinker = next;
    }
}

static void P_PlayerThink(player_t *player)
{
    mobj_t *mo = player->mo;
    mo->angle += player->turn;
    if ((leveltime & 31) == 0) player->turn = (P_Random() - 128) << 19;
    mo->momx += FixedMul(2*FRACUNIT, finecosine[mo->angle>>ANGLETOFINESHIFT]); mo->momy += FixedMul(2*FRACUNIT, finesine[mo->angle>>ANGLETOFINESHIFT]);
    if (abs(mo->momx) > 20*FRACUNIT) mo->momx /= 2;
    if (abs(mo->momy) > 20*FRACUNIT) mo->momy /= 2;
    player->bob = finesine[(FINEANGLES/20*leveltime) & FINEMASK];
    player->viewz = mo->z + player->viewheight + player->bob*2;
    if (player->viewz > mo->ceilingz - 4*FRACUNIT) player->viewz = mo->ceilingz - 4*FRACUNIT;
    if (leveltime % 50 == 3) { validcount++; P_RecursiveSound(mo->subsector->sector, 0, mo); }
}

static void P_Ticker(void) { P_PlayerThink(&players[0]); P_RunThinkers(); leveltime++; }

// ---- p_setup ----
#define CELLS 16
#define CELL (128*FRACUNIT)
static byte solid[CELLS][CELLS]; static int horizontal[CELLS+1][CELLS], vertical[CELLS][CELLS+1];

static int AddLine(int v1, int v2, int fx, int fy, int bx, int by)
{
    line_t *ld = &lines[numlines]; boolean f = fx >= 0 && fy >= 0 && fx < CELLS && fy < CELLS && !solid[fy][fx], b = bx >= 0 && by >= 0 && bx < CELLS && by < CELLS && !solid[by][bx]; int t;
    if (!f && !b) return -1;
    if (!f) { t = v1; v1 = v2; v2 = t; t = fx; fx = bx; bx = t; t = fy; fy = by; by = t; }
    ld->v1 = &vertexes[v1]; ld->v2 = &vertexes[v2]; ld->dx = ld->v2->x - ld->v1->x; ld->dy = ld->v2->y - ld->v1->y;
    ld->slopetype = ld->dx ? ST_HORIZONTAL : ST_VERTICAL; ld->flags = f && b ? ML_TWOSIDED : ML_BLOCKING; ld->special = numlines % 13 == 0;
    ld->bbox[BOXLEFT] = ld->v1->x < ld->v2->x ? ld->v1->x : ld->v2->x; ld->bbox[BOXRIGHT] = ld->v1->x + ld->v2->x - ld->bbox[BOXLEFT];
    ld->bbox[BOXBOTTOM] = ld->v1->y < ld->v2->y ? ld->v1->y : ld->v2->y; ld->bbox[BOXTOP] = ld->v1->y + ld->v2->y - ld->bbox[BOXBOTTOM];
    ld->frontsector = &sectors[fy*CELLS+fx]; ld->backsector = f && b ? &sectors[by*CELLS+bx] : NULL; ld->sidenum[1] = -1;
    for (int i = 0; i < (f && b ? 2 : 1); i++) { side_t *sd = &sides[numsides]; ld->sidenum[i] = numsides++; sd->sector = i ? ld->backsector : ld->frontsector; sd->midtexture = 1 + P_Random()%7; sd->toptexture = 1 + P_Random()%7; sd->bottomtexture = 1 + P_Random()%7; sd->textureoffset = (P_Random()&31)<<FRACBITS; }
    return numlines++;
}

static void AddSeg(subsector_t *ss, int linenum)
{
    line_t *ld; seg_t *sg; int side;
    if (linenum < 0) return;
    ld = &lines[linenum]; sg = &segs[numsegs++]; side = ld->frontsector != ss->sector;
    sg->v1 = side ? ld->v2 : ld->v1; sg->v2 = side ? ld->v1 : ld->v2; sg->linedef = ld; sg->sidedef = &sides[ld->sidenum[side]]; sg->frontsector = ss->sector; sg->backsector = side ? ld->frontsector : ld->backsector;
    sg->angle = R_PointToAngle2(sg->v1->x, sg->v1->y, sg->v2->x, sg->v2->y); ss->numlines++;
}

static int BuildNode(int x0, int y0, int x1, int y1, fixed_t *bbox)
{
    fixed_t boxes[2][4]; int c0, c1; node_t *n;
    bbox[BOXLEFT] = x0*CELL; bbox[BOXRIGHT] = x1*CELL; bbox[BOXBOTTOM] = y0*CELL; bbox[BOXTOP] = y1*CELL;
    if (x1-x0 == 1 && y1-y0 == 1) {
        subsector_t *ss = &subsectors[numsubsectors]; ss->sector = &sectors[y0*CELLS+x0]; ss->firstline = numsegs; ss->numlines = 0;
        if (!solid[y0][x0]) { AddSeg(ss, horizontal[y0][x0]); AddSeg(ss, horizontal[y1][x0]); AddSeg(ss, vertical[y0][x0]); AddSeg(ss, vertical[y0][x1]); }
        return numsubsectors++ | NF_SUBSECTOR;
    }
    if (x1-x0 >= y1-y0) { int m = (x0+x1)/2; c0 = BuildNode(m, y0, x1, y1, boxes[0]); c1 = BuildNode(x0, y0, m, y1, boxes[1]); n = &nodes[numnodes]; n->x = m*CELL; n->y = y0*CELL; n->dx = 0; n->dy = (y1-y0)*CELL; }
    else { int m = (y0+y1)/2; c0 = BuildNode(x0, y0, x1, m, boxes[0]); c1 = BuildNode(x0, m, x1, y1, boxes[1]); n = &nodes[numnodes]; n->x = x0*CELL; n->y = m*CELL; n->dx = (x1-x0)*CELL; n->dy = 0; }
    n->children[0] = c0; n->children[1] = c1; memcpy(n->bbox, boxes, sizeof(boxes));
    return numnodes++;
}

static NOINLINE void P_SetupLevel(void)
{
    fixed_t box[4]; int i, x, y, k;
    Z_FreeTags(PU_LEVEL, PU_LEVSPEC);
    thinkercap.prev = thinkercap.next = &thinkercap; prndindex = 0; leveltime = 0; memset(&level, 0, sizeof(level));
    numvertexes = numsegs = numsubsectors = numnodes = numlines = numsides = 0; numsectors = CELLS*CELLS;
    vertexes = Z_MallocArray(vertex_t, (CELLS+1)*(CELLS+1), PU_LEVEL, &vertexes); sectors = Z_MallocArray(sector_t, numsectors, PU_LEVEL, &sectors); lines = Z_MallocArray(line_t, 2*CELLS*(CELLS+1), PU_LEVEL, &lines); sides = Z_MallocArray(side_t, 4*CELLS*(CELLS+1), PU_LEVEL, &sides);
    segs = Z_MallocArray(seg_t, 4*CELLS*CELLS, PU_LEVEL, &segs); subsectors = Z_MallocArray(subsector_t, CELLS*CELLS, PU_LEVEL, &subsectors); nodes = Z_MallocArray(node_t, CELLS*CELLS, PU_LEVEL, &nodes); blocklinks = Z_MallocArray(mobj_t *, CELLS*CELLS, PU_LEVEL, &blocklinks); blockmaplump = Z_MallocArray(short, 8192, PU_LEVEL, &blockmaplump);
    memset(sectors, 0, sizeof(sector_t)*numsectors); memset(lines, 0, sizeof(line_t)*2*CELLS*(CELLS+1)); memset(sides, 0, sizeof(side_t)*4*CELLS*(CELLS+1)); memset(segs, 0, sizeof(seg_t)*4*CELLS*CELLS); memset(blocklinks, 0, sizeof(mobj_t *)*CELLS*CELLS);
    for (y = 0; y <= CELLS; y++) for (x = 0; x <= CELLS; x++) { vertexes[numvertexes].x = x*CELL; vertexes[numvertexes++].y = y*CELL; }
    for (y = 0; y < CELLS; y++) for (x = 0; x < CELLS; x++) {
        sector_t *s = &sectors[y*CELLS+x];
        solid[y][x] = (x % 5 == 2 && y % 4 == 1) || P_Random() < 16;
        s->floorheight = (P_Random()%4)*8*FRACUNIT; s->ceilingheight = (112 + (P_Random()%4)*24)*FRACUNIT; s->floorpic = P_Random()%3; s->ceilingpic = 3 + P_Random()%3; s->lightlevel = 128 + (P_Random()%4)*32;
    }
    for (y = 0; y <= CELLS; y++) for (x = 0; x < CELLS; x++) horizontal[y][x] = AddLine(y*(CELLS+1)+x, y*(CELLS+1)+x+1, x, y-1, x, y); // going east: the right side is south
    for (y = 0; y < CELLS; y++) for (x = 0; x <= CELLS; x++) vertical[y][x] = AddLine(y*(CELLS+1)+x, (y+1)*(CELLS+1)+x, x, y, x-1, y); // going north: the right side is east
    BuildNode(0, 0, CELLS, CELLS, box);
    for (i = 0; i < numsectors; i++) {
        sector_t *s = &sectors[i]; s->lines = Z_MallocArray(line_t *, 4, PU_LEVEL, NULL);
        int l4[4] = { horizontal[i/CELLS][i%CELLS], horizontal[i/CELLS+1][i%CELLS], vertical[i/CELLS][i%CELLS], vertical[i/CELLS][i%CELLS+1] };
        for (k = 0; k < 4 && !solid[i/CELLS][i%CELLS]; k++) if (l4[k] >= 0) s->lines[s->linecount++] = &lines[l4[k]];
    }
    bmapwidth = bmapheight = CELLS; bmaporgx = bmaporgy = 0; blockmap = blockmaplump + 4; k = 4 + CELLS*CELLS;
    for (i = 0; i < CELLS*CELLS; i++) {
        blockmap[i] = k;
        for (int j = 0; j < numlines; j++) { line_t *l = &lines[j]; x = i%CELLS; y = i/CELLS; if (l->bbox[BOXRIGHT] >= x*CELL && l->bbox[BOXLEFT] <= (x+1)*CELL && l->bbox[BOXTOP] >= y*CELL && l->bbox[BOXBOTTOM] <= (y+1)*CELL && (l->dx ? l->bbox[BOXLEFT] == x*CELL : l->bbox[BOXBOTTOM] == y*CELL)) blockmaplump[k++] = j; }
        blockmaplump[k++] = -1;
        if (k > 8100) I_Error("blockmap");
    }
    for (i = 0; i < numsectors; i++) {
        x = i%CELLS; y = i/CELLS;
        if (solid[y][x]) continue;
        if (i % 9 == 4) { plat_t *plat = Z_Malloc(plat_t, PU_LEVSPEC, NULL); plat->sector = &sectors[i]; plat->speed = FRACUNIT; plat->low = sectors[i].floorheight; plat->high = plat->low + 40*FRACUNIT; plat->wait = 20 + P_Random()%40; plat->status = 0; plat->count = 1; sectors[i].specialdata = plat; plat->thinker.function.acp1 = T_PlatRaise; P_AddThinker(&plat->thinker); }
        if (i % 7 == 2) { fireflicker_t *f = Z_Malloc(fireflicker_t, PU_LEVSPEC, NULL); f->sector = &sectors[i]; f->maxlight = sectors[i].lightlevel; f->minlight = 96; f->count = 1 + P_Random()%4; f->thinker.function.acp1 = T_FireFlicker; P_AddThinker(&f->thinker); }
        if (i != CELLS*8+8 && i % 2) P_SpawnMobj(x*CELL + CELL/2, y*CELL + CELL/2, MININT, i % 3 ? MT_TROOP : MT_SERGEANT);
    }
    memset(&players[0], 0, sizeof(player_t));
    for (i = CELLS*8+8; solid[i/CELLS][i%CELLS] || sectors[i].thinglist; i++);
    players[0].mo = P_SpawnMobj((i%CELLS)*CELL + CELL/2, (i/CELLS)*CELL + CELL/2, MININT, MT_PLAYER); players[0].mo->player = &players[0]; players[0].viewheight = 41*FRACUNIT;
}

// no libm: the tables are made here
static double T_Sin(double x)
{
    double t, s; int n;
    while (x > 3.14159265358979) x -= 2*3.14159265358979323846;
    for (t = s = x, n = 1; n < 14; n++) s += t *= -x*x/((2*n)*(2*n+1));
    return s;
}
static double T_Tan(double x) { double c = T_Sin(x + 3.14159265358979323846/2); return T_Sin(x)/c; }
static double T_Atan(double x) { double y = x*0.8; for (int n = 0; n < 8; n++) { double t = T_Tan(y); y -= (t-x)/(1+t*t); } return y; }
#define PI 3.14159265358979323846

static void R_Init(void)
{
    int i, j, x; fixed_t focallength;
    for (i = 0; i < 256; i++) rndtable[i] = tr_rand()>>30;
    for (i = 0; i < 5*FINEANGLES/4; i++) finesine[i] = (fixed_t)(T_Sin((i+0.5)*PI*2/FINEANGLES)*FRACUNIT);
    for (i = 0; i < FINEANGLES/2; i++) finetangent[i] = (fixed_t)(T_Tan((i-FINEANGLES/4+0.5)*PI*2/FINEANGLES)*FRACUNIT);
    for (i = 0; i <= SLOPERANGE; i++) tantoangle[i] = (angle_t)(T_Atan((double)i/SLOPERANGE)/(PI*2)*4294967295.0);
    focallength = FixedDiv(centerxfrac, finetangent[FINEANGLES/4+1024]);
    for (i = 0; i < FINEANGLES/2; i++) {
        int t;
        if (finetangent[i] > FRACUNIT*2) t = -1; else if (finetangent[i] < -FRACUNIT*2) t = SCREENWIDTH+1;
        else { t = FixedMul(finetangent[i], focallength); t = (centerxfrac - t + FRACUNIT-1)>>FRACBITS; if (t < -1) t = -1; else if (t > SCREENWIDTH+1) t = SCREENWIDTH+1; }
        viewangletox[i] = t;
    }
    for (x = 0; x <= SCREENWIDTH; x++) { i = 0; while (viewangletox[i] > x) i++; xtoviewangle[x] = ((unsigned)i<<ANGLETOFINESHIFT) - ANG90; }
    for (i = 0; i < FINEANGLES/2; i++) { if (viewangletox[i] == -1) viewangletox[i] = 0; else if (viewangletox[i] == SCREENWIDTH+1) viewangletox[i] = SCREENWIDTH; }
    clipangle = xtoviewangle[0];
    for (i = 0; i < SCREENHEIGHT; i++) { fixed_t dy = abs(((i-SCREENHEIGHT/2)<<FRACBITS) + FRACUNIT/2); yslope[i] = FixedDiv(SCREENWIDTH/2*FRACUNIT, dy); ylookup[i] = screens + i*SCREENWIDTH; screenheightarray[0] = SCREENHEIGHT; }
    for (i = 0; i < SCREENWIDTH; i++) { distscale[i] = FixedDiv(FRACUNIT, abs(finecosine[xtoviewangle[i]>>ANGLETOFINESHIFT])); columnofs[i] = i; negonearray[i] = -1; screenheightarray[i] = SCREENHEIGHT; }
    colormaps = Z_MallocArray(unsigned char, (NUMCOLORMAPS+1)*256, PU_STATIC, NULL);
    for (i = 0; i < NUMCOLORMAPS; i++) for (j = 0; j < 256; j++) colormaps[i*256+j] = j*(NUMCOLORMAPS-i)/NUMCOLORMAPS;
    for (i = 0; i < LIGHTLEVELS; i++) {
        int startmap = (LIGHTLEVELS-1-i)*2*NUMCOLORMAPS/LIGHTLEVELS, lv;
        for (j = 0; j < MAXLIGHTZ; j++) { int scale = FixedDiv(SCREENWIDTH/2*FRACUNIT, (j+1)<<LIGHTZSHIFT) >> LIGHTSCALESHIFT; lv = startmap - scale/2; zlight[i][j] = colormaps + (lv < 0 ? 0 : lv >= NUMCOLORMAPS ? NUMCOLORMAPS-1 : lv)*256; }
        for (j = 0; j < MAXLIGHTSCALE; j++) { lv = startmap - j/2; scalelight[i][j] = colormaps + (lv < 0 ? 0 : lv >= NUMCOLORMAPS ? NUMCOLORMAPS-1 : lv)*256; }
    }
    for (i = 0; i < NUMTEXTURES; i++) {
        texture_t *t = textures[i] = Z_Malloc(texture_t, PU_STATIC, NULL); memset(t, 0, sizeof(*t)); t->width = t->height = 64; t->patchcount = 1; textureheight[i] = 64<<FRACBITS; snprintf(t->name, 8, "WALL%d", i);
        t->composite = Z_MallocArray(unsigned char, 64*64, PU_STATIC, NULL);
        for (j = 0; j < 64*64; j++) t->composite[j] = (j*i) ^ (j>>6) ^ (tr_rand()>>40 & 15);
        for (j = 0; j < 64; j++) t->columnofs[j] = j*64;
    }
    for (i = 0; i < NUMFLATS; i++) { flats[i] = Z_MallocArray(unsigned char, 64*64, PU_STATIC, NULL); for (j = 0; j < 64*64; j++) flats[i][j] = i*40 + (tr_rand()>>40 & 31); }
    for (i = 0; i < 16; i++) { // two posts a column
        int bytes = offsetof(patch_t, data) + 32*64; patch_t *p = spritepatches[i] = (patch_t *)Z_MallocKind("patch_t", bytes, bytes, PU_STATIC, NULL); byte *d = p->data;
        p->width = i < 8 ? 32 : 16; p->height = i < 8 ? 52 : 16; p->leftoffset = p->width/2; p->topoffset = p->height;
        for (j = 0; j < 32; j++) {
            int len = p->height/2 - 2 - (j&1); p->columnofs[j] = d - (byte *)p;
            for (int post = 0; post < 2; post++) { *d++ = post*p->height/2; *d++ = len; d++; for (x = 0; x < len+1; x++) *d++ = 64 + i*8 + (tr_rand()>>40 & 31); }
            *d++ = 0xff;
        }
        if (d > (byte *)p + bytes) I_Error("patch");
    }
}

static unsigned P_CheckLevel(void) // everything is linked where it is
{
    unsigned sum = 0;
    for (int i = 0; i < numsectors; i++) for (mobj_t *m = sectors[i].thinglist; m; m = m->snext) { if (m->subsector->sector != &sectors[i] || (m->snext && m->snext->sprev != m)) I_Error("P_CheckLevel: sector list"); sum = sum*31 + m->x + m->y*7 + m->z; }
    for (int i = 0; i < CELLS*CELLS; i++) for (mobj_t *m = blocklinks[i]; m; m = m->bnext) if ((m->y>>MAPBLOCKSHIFT)*bmapwidth + (m->x>>MAPBLOCKSHIFT) != i) I_Error("P_CheckLevel: block list");
    for (int i = 0; i < SCREENWIDTH*SCREENHEIGHT; i += 37) sum = sum*33 + screens[i];
    return sum;
}

int main(int argc, char **argv)
{
    int demos = 0, frames = 0; unsigned want = 0, got = 0;
    tr_init(argc, argv);
    TR_GLOBAL(finesine, "int []"); TR_GLOBAL(finetangent, "int []"); TR_GLOBAL(tantoangle, "unsigned int []"); TR_GLOBAL(rndtable, "unsigned char []"); TR_GLOBAL(prndindex, "int"); TR_GLOBAL(finecosine, "int *");
    TR_GLOBAL(mainzone, "memblock_t"); TR_GLOBAL(zonekinds, "zonekind_t []"); TR_GLOBAL(states, "state_t []"); TR_GLOBAL(mobjinfo, "mobjinfo_t []"); TR_GLOBAL(players, "player_t []"); TR_GLOBAL(thinkercap, "thinker_t");
    TR_GLOBAL(vertexes, "vertex_t *"); TR_GLOBAL(segs, "seg_t *"); TR_GLOBAL(sectors, "sector_t *"); TR_GLOBAL(subsectors, "subsector_t *"); TR_GLOBAL(nodes, "node_t *"); TR_GLOBAL(lines, "line_t *"); TR_GLOBAL(sides, "side_t *"); TR_GLOBAL(blockmap, "short *"); TR_GLOBAL(blockmaplump, "short *"); TR_GLOBAL(blocklinks, "mobj_t **"); TR_GLOBAL(bmapwidth, "int"); TR_GLOBAL(validcount, "int"); TR_GLOBAL(leveltime, "int"); TR_GLOBAL(numnodes, "int");
    TR_GLOBAL(viewx, "int"); TR_GLOBAL(viewy, "int"); TR_GLOBAL(viewz, "int"); TR_GLOBAL(viewangle, "unsigned int"); TR_GLOBAL(viewcos, "int"); TR_GLOBAL(viewsin, "int"); TR_GLOBAL(clipangle, "unsigned int"); TR_GLOBAL(xtoviewangle, "unsigned int []"); TR_GLOBAL(viewangletox, "int []"); TR_GLOBAL(screens, "unsigned char []"); TR_GLOBAL(ylookup, "unsigned char *[]"); TR_GLOBAL(columnofs, "int []"); TR_GLOBAL(scalelight, "unsigned char *[]"); TR_GLOBAL(zlight, "unsigned char *[]"); TR_GLOBAL(textures, "texture_t *[]"); TR_GLOBAL(textureheight, "int []"); TR_GLOBAL(flats, "unsigned char *[]"); TR_GLOBAL(spritepatches, "patch_t *[]");
    TR_GLOBAL(dc_colormap, "unsigned char *"); TR_GLOBAL(dc_source, "unsigned char *"); TR_GLOBAL(dc_x, "int"); TR_GLOBAL(dc_yl, "int"); TR_GLOBAL(dc_yh, "int"); TR_GLOBAL(dc_iscale, "int"); TR_GLOBAL(dc_texturemid, "int"); TR_GLOBAL(ds_colormap, "unsigned char *"); TR_GLOBAL(ds_source, "unsigned char *"); TR_GLOBAL(ds_y, "int"); TR_GLOBAL(ds_x1, "int"); TR_GLOBAL(ds_x2, "int"); TR_GLOBAL(ds_xfrac, "int"); TR_GLOBAL(ds_yfrac, "int"); TR_GLOBAL(ds_xstep, "int"); TR_GLOBAL(ds_ystep, "int");
    TR_GLOBAL(visplanes, "visplane_t []"); TR_GLOBAL(lastvisplane, "visplane_t *"); TR_GLOBAL(floorplane, "visplane_t *"); TR_GLOBAL(ceilingplane, "visplane_t *"); TR_GLOBAL(openings, "short []"); TR_GLOBAL(floorclip, "short []"); TR_GLOBAL(ceilingclip, "short []"); TR_GLOBAL(spanstart, "int []"); TR_GLOBAL(yslope, "int []"); TR_GLOBAL(distscale, "int []"); TR_GLOBAL(cachedheight, "int []"); TR_GLOBAL(cacheddistance, "int []"); TR_GLOBAL(cachedxstep, "int []"); TR_GLOBAL(cachedystep, "int []"); TR_GLOBAL(negonearray, "short []"); TR_GLOBAL(screenheightarray, "short []"); TR_GLOBAL(planezlight, "unsigned char **"); TR_GLOBAL(planeheight, "int");
    TR_GLOBAL(drawsegs, "drawseg_t []"); TR_GLOBAL(ds_p, "drawseg_t *"); TR_GLOBAL(solidsegs, "cliprange_t []"); TR_GLOBAL(curline, "seg_t *"); TR_GLOBAL(sidedef, "side_t *"); TR_GLOBAL(linedef, "line_t *"); TR_GLOBAL(frontsector, "sector_t *"); TR_GLOBAL(backsector, "sector_t *"); TR_GLOBAL(rw_x, "int"); TR_GLOBAL(rw_stopx, "int"); TR_GLOBAL(rw_scale, "int"); TR_GLOBAL(rw_scalestep, "int"); TR_GLOBAL(rw_distance, "int"); TR_GLOBAL(rw_offset, "int"); TR_GLOBAL(topfrac, "int"); TR_GLOBAL(topstep, "int"); TR_GLOBAL(bottomfrac, "int"); TR_GLOBAL(bottomstep, "int"); TR_GLOBAL(midtexture, "int"); TR_GLOBAL(toptexture, "int"); TR_GLOBAL(bottomtexture, "int"); TR_GLOBAL(walllights, "unsigned char **"); TR_GLOBAL(markfloor, "boolean"); TR_GLOBAL(markceiling, "boolean"); TR_GLOBAL(segtextured, "boolean");
    TR_GLOBAL(vissprites, "vissprite_t []"); TR_GLOBAL(vissprite_p, "vissprite_t *"); TR_GLOBAL(vsprsortedhead, "vissprite_t"); TR_GLOBAL(clipbot, "short []"); TR_GLOBAL(cliptop, "short []"); TR_GLOBAL(mfloorclip, "short *"); TR_GLOBAL(mceilingclip, "short *"); TR_GLOBAL(spryscale, "int"); TR_GLOBAL(sprtopscreen, "int"); TR_GLOBAL(checkcoord, "int []");
    TR_GLOBAL(tmbbox, "int []"); TR_GLOBAL(tmx, "int"); TR_GLOBAL(tmy, "int"); TR_GLOBAL(tmfloorz, "int"); TR_GLOBAL(tmceilingz, "int"); TR_GLOBAL(tmthing, "mobj_t *"); TR_GLOBAL(numspechit, "int"); TR_GLOBAL(spechit, "line_t *[]"); TR_GLOBAL(opentop, "int"); TR_GLOBAL(openbottom, "int"); TR_GLOBAL(xspeed, "int []"); TR_GLOBAL(yspeed, "int []"); TR_GLOBAL(detail_columns, "int"); TR_GLOBAL(detail_spans, "int");
    TR_CHECK(mobj_t, lastlook); TR_CHECK(line_t, bbox); TR_CHECK(visplane_t, bottom); TR_CHECK(sector_t, lines); TR_CHECK(drawseg_t, sprtopclip);
    mainzone.next = mainzone.prev = &mainzone;
    R_Init();
    while (tr_more()) {
        P_SetupLevel();
        for (int tic = 0; tic < 600; tic++) { P_Ticker(); if (tic % 8 == 0) { R_RenderPlayerView(&players[0]); frames++; } }
        got = P_CheckLevel();
        if (!demos++) want = got;
        if (got != want) I_Error("the demo went out of sync");
    }
    if (getenv("SHOW")) fprintf(stderr, "demos %d frames %d columns %d spans %d kills %d shots %d moves %d blocked %d floors %d heard %d sum %x kinds %d planes %d drawsegs %d\n", demos, frames, detail_columns, detail_spans, level.kills, level.shots, level.moves, level.blocked, level.floors, level.heard, want, numzonekinds, (int)(lastvisplane-visplanes), (int)(ds_p-drawsegs));
    tr_sink = got;
    return 0;
}
