/*
 * A coder of still pictures: colour conversion, halved chroma, integer DCT, quantisation, zigzag, Huffman codes with
 * their tables derived, a bit reader with lookahead, progressive refinement of the coefficients that are kept.
 *
 * The coder's parts are modules with methods in structs, whose private parts follow the public one.
 */
#include "../heap.h"
#include <setjmp.h>

typedef unsigned char JSAMPLE;
typedef JSAMPLE *JSAMPROW;
typedef JSAMPROW *JSAMPARRAY;
typedef short JCOEF;
typedef JCOEF JBLOCK[64];
typedef JBLOCK *JBLOCKROW;
typedef unsigned char UINT8;
typedef unsigned short UINT16;
typedef int DCTELEM;
typedef unsigned int JDIMENSION;
typedef unsigned char JOCTET;
typedef int boolean;

#define METHODDEF(type) static type
#define LOCAL(type) static type
#define GETJSAMPLE(v) ((int)(v))
#define DCTSIZE 8
#define DCTSIZE2 64
#define NUM_QUANT_TBLS 2
#define NUM_HUFF_TBLS 2
#define MAX_COMPONENTS 3
#define HUFF_LOOKAHEAD 8
#define TRUE 1
#define FALSE 0

typedef struct jpeg_struct *j_ptr;

typedef struct {
  UINT16 quantval[DCTSIZE2];
  boolean sent_table;
} JQUANT_TBL;

typedef struct {
  UINT8 bits[17];
  UINT8 huffval[256];
  boolean sent_table;
} JHUFF_TBL;

typedef struct {
  int component_id, component_index;
  int h_samp_factor, v_samp_factor;
  int quant_tbl_no, dc_tbl_no, ac_tbl_no;
  JDIMENSION width_in_blocks, height_in_blocks;
  JSAMPARRAY plane;           /* rows of samples, padded to whole blocks */
  JBLOCKROW *coefs;           /* rows of blocks */
  JQUANT_TBL *quant_table;
} jpeg_component_info;

struct jpeg_destination_mgr {
  JOCTET *next_output_byte;
  size_t free_in_buffer;
  JOCTET *buffer;
  size_t size;
  void (*empty_output_buffer) (j_ptr cinfo);
};

struct jpeg_source_mgr {
  const JOCTET *next_input_byte;
  size_t bytes_in_buffer;
};

struct jpeg_error_mgr {
  void (*error_exit) (j_ptr cinfo);
  int msg_code;
  long num_warnings;
  jmp_buf setjmp_buffer;
};

struct jpeg_color_converter {
  void (*color_convert) (j_ptr cinfo, JDIMENSION row, int num_rows);
};

struct jpeg_forward_dct {
  void (*forward_DCT) (j_ptr cinfo, jpeg_component_info *compptr, JDIMENSION block_row);
};

struct jpeg_entropy_encoder {
  void (*start_pass) (j_ptr cinfo, boolean gather_statistics);
  void (*encode_mcu) (j_ptr cinfo, JDIMENSION mcu_row, JDIMENSION mcu_col);
  void (*finish_pass) (j_ptr cinfo);
};

struct jpeg_entropy_decoder {
  void (*start_pass) (j_ptr cinfo);
  boolean (*decode_mcu) (j_ptr cinfo, JDIMENSION mcu_row, JDIMENSION mcu_col);
};

struct jpeg_inverse_dct {
  void (*inverse_DCT[MAX_COMPONENTS]) (j_ptr cinfo, jpeg_component_info *compptr, const JCOEF *coef_block, JSAMPARRAY output, JDIMENSION col);
};

struct jpeg_struct {
  struct jpeg_error_mgr *err;
  JDIMENSION image_width, image_height;
  int num_components, quality;
  JSAMPARRAY image;           /* three samples each */
  JSAMPARRAY output;
  jpeg_component_info comp_info[MAX_COMPONENTS];
  JQUANT_TBL *quant_tbl_ptrs[NUM_QUANT_TBLS];
  JHUFF_TBL *dc_huff_tbl_ptrs[NUM_HUFF_TBLS];
  JHUFF_TBL *ac_huff_tbl_ptrs[NUM_HUFF_TBLS];
  JDIMENSION mcus_per_row, mcu_rows;
  unsigned int restart_interval;
  struct jpeg_destination_mgr *dest;
  struct jpeg_source_mgr *src;
  struct jpeg_color_converter *cconvert;
  struct jpeg_forward_dct *fdct;
  struct jpeg_entropy_encoder *entropy;
  struct jpeg_entropy_decoder *entropy_dec;
  struct jpeg_inverse_dct *idct;
};

LOCAL(const int) jpeg_natural_order[DCTSIZE2] = {
  0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
  35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63
};

/* ---- colour ---- */

#define SCALEBITS 16
#define FIX(x) ((int)((x) * (1L << SCALEBITS) + 0.5))
enum { R_Y_OFF = 0, G_Y_OFF = 256, B_Y_OFF = 512, R_CB_OFF = 768, G_CB_OFF = 1024, B_CB_OFF = 1280, G_CR_OFF = 1536, B_CR_OFF = 1792, TABLE_SIZE = 2048 };

typedef struct {
  struct jpeg_color_converter pub;
  int *rgb_ycc_tab;
  JSAMPARRAY full[2];         /* chroma, before it is halved */
} my_color_converter;

METHODDEF(void)
rgb_ycc_convert(j_ptr cinfo, JDIMENSION row, int num_rows)
{
  my_color_converter *cconvert = (my_color_converter *)cinfo->cconvert;
  register int *ctab = cconvert->rgb_ycc_tab;
  for (int i = 0; i < num_rows; i++) {
    JSAMPROW inptr = cinfo->image[row + i], outptr0 = cinfo->comp_info[0].plane[row + i];
    JSAMPROW outptr1 = cconvert->full[0][i], outptr2 = cconvert->full[1][i];
    for (JDIMENSION col = 0; col < cinfo->image_width; col++) {
      int r = GETJSAMPLE(inptr[0]), g = GETJSAMPLE(inptr[1]), b = GETJSAMPLE(inptr[2]);
      inptr += 3;
      outptr0[col] = (JSAMPLE)((ctab[r + R_Y_OFF] + ctab[g + G_Y_OFF] + ctab[b + B_Y_OFF]) >> SCALEBITS);
      outptr1[col] = (JSAMPLE)((ctab[r + R_CB_OFF] + ctab[g + G_CB_OFF] + ctab[b + B_CB_OFF]) >> SCALEBITS);
      outptr2[col] = (JSAMPLE)((ctab[r + B_CB_OFF] + ctab[g + G_CR_OFF] + ctab[b + B_CR_OFF]) >> SCALEBITS);
    }
  }
  for (int ci = 1; ci < 3; ci++) {
    JSAMPARRAY full = cconvert->full[ci - 1];
    for (int i = 0; i < num_rows / 2; i++) {
      JSAMPROW outptr = cinfo->comp_info[ci].plane[row / 2 + i], in0 = full[2 * i], in1 = full[2 * i + 1];
      int bias = 1;
      for (JDIMENSION col = 0; col < cinfo->image_width / 2; col++, in0 += 2, in1 += 2, bias ^= 3)
        outptr[col] = (JSAMPLE)((in0[0] + in0[1] + in1[0] + in1[1] + bias) >> 2);
    }
  }
}

LOCAL(void)
jinit_color_converter(j_ptr cinfo)
{
  my_color_converter *cconvert = HEAP_CALLOC(my_color_converter, 1);
  int *tab = cconvert->rgb_ycc_tab = HEAP_CALLOC(int, TABLE_SIZE);
  for (int i = 0; i < 256; i++) {
    tab[i + R_Y_OFF] = FIX(0.29900) * i;
    tab[i + G_Y_OFF] = FIX(0.58700) * i;
    tab[i + B_Y_OFF] = FIX(0.11400) * i + (1 << (SCALEBITS - 1));
    tab[i + R_CB_OFF] = -FIX(0.16874) * i;
    tab[i + G_CB_OFF] = -FIX(0.33126) * i;
    tab[i + B_CB_OFF] = FIX(0.50000) * i + (128 << SCALEBITS) + (1 << (SCALEBITS - 1)) - 1;
    tab[i + G_CR_OFF] = -FIX(0.41869) * i;
    tab[i + B_CR_OFF] = -FIX(0.08131) * i;
  }
  for (int c = 0; c < 2; c++) {
    cconvert->full[c] = HEAP_CALLOC(unsigned char *, 16);
    for (int i = 0; i < 16; i++) cconvert->full[c][i] = HEAP_CALLOC(unsigned char, cinfo->image_width);
  }
  cconvert->pub.color_convert = rgb_ycc_convert;
  cinfo->cconvert = &cconvert->pub;
}

/* ---- DCT ---- */

typedef struct {
  struct jpeg_forward_dct pub;
  DCTELEM *divisors[NUM_QUANT_TBLS];
  DCTELEM *workspace;
} my_fdct;

#define CONST_BITS 13
#define PASS1_BITS 2
#define DESCALE(x, n) (((x) + (1 << ((n) - 1))) >> (n))
#define MULTIPLY(v, c) ((v) * (c))

LOCAL(NOINLINE void)
jpeg_fdct_islow(DCTELEM *data)
{
  for (int pass = 0; pass < 2; pass++) {
    DCTELEM *p = data;
    int s = pass ? DCTSIZE : 1, shift = pass ? CONST_BITS + PASS1_BITS : CONST_BITS - PASS1_BITS;
    for (int ctr = 0; ctr < DCTSIZE; ctr++, p += pass ? 1 : DCTSIZE) {
      int t0 = p[0] + p[7 * s], t7 = p[0] - p[7 * s], t1 = p[s] + p[6 * s], t6 = p[s] - p[6 * s];
      int t2 = p[2 * s] + p[5 * s], t5 = p[2 * s] - p[5 * s], t3 = p[3 * s] + p[4 * s], t4 = p[3 * s] - p[4 * s];
      int t10 = t0 + t3, t13 = t0 - t3, t11 = t1 + t2, t12 = t1 - t2, z1, z2, z3, z4, z5;
      p[0] = pass ? DESCALE(t10 + t11, PASS1_BITS) : (t10 + t11) * (1 << PASS1_BITS);
      p[4 * s] = pass ? DESCALE(t10 - t11, PASS1_BITS) : (t10 - t11) * (1 << PASS1_BITS);
      z1 = MULTIPLY(t12 + t13, 4433);
      p[2 * s] = DESCALE(z1 + MULTIPLY(t13, 6270), shift);
      p[6 * s] = DESCALE(z1 - MULTIPLY(t12, 15137), shift);
      z1 = t4 + t7, z2 = t5 + t6, z3 = t4 + t6, z4 = t5 + t7;
      z5 = MULTIPLY(z3 + z4, 9633);
      t4 = MULTIPLY(t4, 2446), t5 = MULTIPLY(t5, 16819), t6 = MULTIPLY(t6, 25172), t7 = MULTIPLY(t7, 12299);
      z1 = MULTIPLY(z1, -7373), z2 = MULTIPLY(z2, -20995);
      z3 = MULTIPLY(z3, -16069) + z5, z4 = MULTIPLY(z4, -3196) + z5;
      p[7 * s] = DESCALE(t4 + z1 + z3, shift);
      p[5 * s] = DESCALE(t5 + z2 + z4, shift);
      p[3 * s] = DESCALE(t6 + z2 + z3, shift);
      p[s] = DESCALE(t7 + z1 + z4, shift);
    }
  }
}

METHODDEF(void)
forward_DCT(j_ptr cinfo, jpeg_component_info *compptr, JDIMENSION block_row)
{
  my_fdct *fdct = (my_fdct *)cinfo->fdct;
  const DCTELEM *divisors = fdct->divisors[compptr->quant_tbl_no];
  DCTELEM *workspace = fdct->workspace;
  JSAMPARRAY rows = compptr->plane + block_row * DCTSIZE;
  for (JDIMENSION bi = 0; bi < compptr->width_in_blocks; bi++) {
    JCOEF *output_ptr = compptr->coefs[block_row][bi];
    DCTELEM *workspaceptr = workspace;
    for (int elemr = 0; elemr < DCTSIZE; elemr++) {
      JSAMPROW elemptr = rows[elemr] + bi * DCTSIZE;
      for (int elemc = 0; elemc < DCTSIZE; elemc++) *workspaceptr++ = GETJSAMPLE(*elemptr++) - 128;
    }
    jpeg_fdct_islow(workspace);
    for (int i = 0; i < DCTSIZE2; i++) {
      DCTELEM qval = divisors[i], temp = workspace[i];
      if (temp < 0) {
        temp = -temp + (qval >> 1);
        temp = temp >= qval ? -(temp / qval) : 0;
      } else {
        temp += qval >> 1;
        temp = temp >= qval ? temp / qval : 0;
      }
      output_ptr[i] = (JCOEF)temp;
    }
  }
}

LOCAL(void)
jinit_forward_dct(j_ptr cinfo)
{
  my_fdct *fdct = HEAP_CALLOC(my_fdct, 1);
  for (int n = 0; n < NUM_QUANT_TBLS; n++) {
    fdct->divisors[n] = HEAP_CALLOC(int, DCTSIZE2);
    for (int i = 0; i < DCTSIZE2; i++) fdct->divisors[n][i] = cinfo->quant_tbl_ptrs[n]->quantval[i] << 3;
  }
  fdct->workspace = HEAP_CALLOC(int, DCTSIZE2);
  fdct->pub.forward_DCT = forward_DCT;
  cinfo->fdct = &fdct->pub;
}

/* ---- Huffman codes: the coder ---- */

typedef struct {
  unsigned int ehufco[256];
  char ehufsi[256];
} c_derived_tbl;

typedef struct {
  unsigned int put_buffer;
  int put_bits;
  int last_dc_val[MAX_COMPONENTS];
} savable_state;

typedef struct {
  struct jpeg_entropy_encoder pub;
  savable_state saved;
  boolean gather;
  c_derived_tbl *dc_derived_tbls[NUM_HUFF_TBLS], *ac_derived_tbls[NUM_HUFF_TBLS];
  int *dc_count_ptrs[NUM_HUFF_TBLS], *ac_count_ptrs[NUM_HUFF_TBLS];
  unsigned long mcus;
} huff_entropy_encoder;

LOCAL(void)
emit_byte(j_ptr cinfo, int val)
{
  struct jpeg_destination_mgr *dest = cinfo->dest;
  *dest->next_output_byte++ = (JOCTET)val;
  if (--dest->free_in_buffer == 0) (*dest->empty_output_buffer) (cinfo);
}

LOCAL(void)
emit_bits(j_ptr cinfo, huff_entropy_encoder *entropy, unsigned int code, int size)
{
  int put_bits = entropy->saved.put_bits + size;
  unsigned int put_buffer = (code & ((1u << size) - 1)) << (24 - put_bits) | entropy->saved.put_buffer;
  while (put_bits >= 8) {
    int c = (int)(put_buffer >> 16 & 0xff);
    emit_byte(cinfo, c);
    if (c == 0xff) emit_byte(cinfo, 0);
    put_buffer <<= 8;
    put_bits -= 8;
  }
  entropy->saved.put_buffer = put_buffer & 0xffffff;
  entropy->saved.put_bits = put_bits;
}

LOCAL(void)
emit_symbol(j_ptr cinfo, huff_entropy_encoder *entropy, int dc, int tbl, int symbol)
{
  if (entropy->gather) {
    (dc ? entropy->dc_count_ptrs : entropy->ac_count_ptrs)[tbl][symbol]++;
  } else {
    c_derived_tbl *d = (dc ? entropy->dc_derived_tbls : entropy->ac_derived_tbls)[tbl];
    emit_bits(cinfo, entropy, d->ehufco[symbol], d->ehufsi[symbol]);
  }
}

LOCAL(NOINLINE void)
encode_one_block(j_ptr cinfo, huff_entropy_encoder *entropy, jpeg_component_info *compptr, const JCOEF *block)
{
  int temp = block[0] - entropy->saved.last_dc_val[compptr->component_index], temp2 = temp, nbits = 0, r = 0;
  entropy->saved.last_dc_val[compptr->component_index] = block[0];
  if (temp < 0) temp = -temp, temp2--;
  for (; temp; temp >>= 1) nbits++;
  emit_symbol(cinfo, entropy, TRUE, compptr->dc_tbl_no, nbits);
  if (nbits && !entropy->gather) emit_bits(cinfo, entropy, (unsigned int)temp2, nbits);
  for (int k = 1; k < DCTSIZE2; k++) {
    if ((temp = block[jpeg_natural_order[k]]) == 0) {
      r++;
      continue;
    }
    for (; r > 15; r -= 16) emit_symbol(cinfo, entropy, FALSE, compptr->ac_tbl_no, 0xf0);
    temp2 = temp;
    if (temp < 0) temp = -temp, temp2--;
    for (nbits = 1; (temp >>= 1) != 0;) nbits++;
    emit_symbol(cinfo, entropy, FALSE, compptr->ac_tbl_no, (r << 4) + nbits);
    if (!entropy->gather) emit_bits(cinfo, entropy, (unsigned int)temp2, nbits);
    r = 0;
  }
  if (r > 0) emit_symbol(cinfo, entropy, FALSE, compptr->ac_tbl_no, 0);
}

METHODDEF(void)
encode_mcu_huff(j_ptr cinfo, JDIMENSION mcu_row, JDIMENSION mcu_col)
{
  huff_entropy_encoder *entropy = (huff_entropy_encoder *)cinfo->entropy;
  for (jpeg_component_info *compptr = cinfo->comp_info; compptr < cinfo->comp_info + cinfo->num_components; compptr++)
    for (int y = 0; y < compptr->v_samp_factor; y++)
      for (int x = 0; x < compptr->h_samp_factor; x++)
        encode_one_block(cinfo, entropy, compptr, compptr->coefs[mcu_row * compptr->v_samp_factor + y][mcu_col * compptr->h_samp_factor + x]);
  entropy->mcus++;
}

/* Figure C.1 and C.2: the codes in the order of their lengths. */
LOCAL(NOINLINE void)
jpeg_make_c_derived_tbl(const JHUFF_TBL *htbl, c_derived_tbl *dtbl)
{
  unsigned int code = 0;
  int p = 0;
  memset(dtbl->ehufsi, 0, sizeof dtbl->ehufsi);
  for (int l = 1; l <= 16; l++, code <<= 1)
    for (int i = 0; i < htbl->bits[l]; i++, p++) {
      dtbl->ehufco[htbl->huffval[p]] = code++;
      dtbl->ehufsi[htbl->huffval[p]] = (char)l;
    }
}

LOCAL(NOINLINE void)
jpeg_gen_optimal_table(j_ptr cinfo, JHUFF_TBL *htbl, int *freq)
{
  int codesize[257] = { 0 }, others[257], bits[64] = { 0 }, i, j, p = 0;
  for (i = 0; i < 257; i++) others[i] = -1;
  freq[256] = 1;
  for (;;) {
    int c1 = -1, c2 = -1, v = 1000000000;
    for (i = 0; i <= 256; i++) if (freq[i] && freq[i] <= v) v = freq[i], c1 = i;
    v = 1000000000;
    for (i = 0; i <= 256; i++) if (freq[i] && freq[i] <= v && i != c1) v = freq[i], c2 = i;
    if (c2 < 0) break;
    freq[c1] += freq[c2];
    freq[c2] = 0;
    codesize[c1]++;
    while (others[c1] >= 0) c1 = others[c1], codesize[c1]++;
    others[c1] = c2;
    codesize[c2]++;
    while (others[c2] >= 0) c2 = others[c2], codesize[c2]++;
  }
  for (i = 0; i <= 256; i++) {
    if (codesize[i] > 60) (*cinfo->err->error_exit) (cinfo);
    if (codesize[i]) bits[codesize[i]]++;
  }
  for (i = 60; i > 16; i--)
    while (bits[i] > 0) {
      for (j = i - 2; bits[j] == 0;) j--;
      bits[i] -= 2, bits[i - 1]++, bits[j + 1] += 2, bits[j]--;
    }
  while (bits[i] == 0) i--;
  bits[i]--;
  for (i = 0; i < 17; i++) htbl->bits[i] = (UINT8)bits[i];
  for (i = 1; i <= 60; i++)
    for (j = 0; j <= 255; j++)
      if (codesize[j] == i) htbl->huffval[p++] = (UINT8)j;
  htbl->sent_table = FALSE;
}

METHODDEF(void)
start_pass_huff(j_ptr cinfo, boolean gather_statistics)
{
  huff_entropy_encoder *entropy = (huff_entropy_encoder *)cinfo->entropy;
  entropy->gather = gather_statistics;
  for (int t = 0; t < NUM_HUFF_TBLS; t++) {
    if (gather_statistics) {
      memset(entropy->dc_count_ptrs[t], 0, 257 * sizeof(int));
      memset(entropy->ac_count_ptrs[t], 0, 257 * sizeof(int));
    } else {
      jpeg_make_c_derived_tbl(cinfo->dc_huff_tbl_ptrs[t], entropy->dc_derived_tbls[t]);
      jpeg_make_c_derived_tbl(cinfo->ac_huff_tbl_ptrs[t], entropy->ac_derived_tbls[t]);
    }
  }
  entropy->saved.put_buffer = 0;
  entropy->saved.put_bits = 0;
  for (int ci = 0; ci < MAX_COMPONENTS; ci++) entropy->saved.last_dc_val[ci] = 0;
}

METHODDEF(void)
finish_pass_huff(j_ptr cinfo)
{
  huff_entropy_encoder *entropy = (huff_entropy_encoder *)cinfo->entropy;
  if (!entropy->gather) {
    emit_bits(cinfo, entropy, 0x7f, 7);
    for (int i = 0; i < 4; i++) emit_byte(cinfo, i & 1 ? 0xd9 : 0xff);
    return;
  }
  for (int t = 0; t < NUM_HUFF_TBLS; t++) {
    jpeg_gen_optimal_table(cinfo, cinfo->dc_huff_tbl_ptrs[t], entropy->dc_count_ptrs[t]);
    jpeg_gen_optimal_table(cinfo, cinfo->ac_huff_tbl_ptrs[t], entropy->ac_count_ptrs[t]);
  }
}

/* ---- the decoder ---- */

typedef struct {
  int maxcode[18];
  int valoffset[17];
  const JHUFF_TBL *pub;
  int lookup[1 << HUFF_LOOKAHEAD];
} d_derived_tbl;

typedef struct {
  unsigned long get_buffer;
  int bits_left;
} bitread_perm_state;

typedef struct {
  struct jpeg_entropy_decoder pub;
  bitread_perm_state bitstate;
  struct { unsigned int EOBRUN; int last_dc_val[MAX_COMPONENTS]; } saved;
  d_derived_tbl *dc_derived_tbls[NUM_HUFF_TBLS], *ac_derived_tbls[NUM_HUFF_TBLS];
  unsigned long slow, fast;
} huff_entropy_decoder;

LOCAL(NOINLINE void)
jpeg_make_d_derived_tbl(const JHUFF_TBL *htbl, d_derived_tbl *dtbl)
{
  int p = 0, code = 0;
  dtbl->pub = htbl;
  memset(dtbl->lookup, 0, sizeof dtbl->lookup);
  for (int l = 1; l <= 16; l++, code <<= 1) {
    dtbl->valoffset[l] = p - code;
    for (int i = 0; i < htbl->bits[l]; i++, p++, code++)
      if (l <= HUFF_LOOKAHEAD)
        for (int ctr = 0; ctr < 1 << (HUFF_LOOKAHEAD - l); ctr++)
          dtbl->lookup[(code << (HUFF_LOOKAHEAD - l)) + ctr] = l << HUFF_LOOKAHEAD | htbl->huffval[p];
    dtbl->maxcode[l] = htbl->bits[l] ? code - 1 : -1;
  }
  dtbl->maxcode[17] = 0xfffff;
}

LOCAL(NOINLINE void)
jpeg_fill_bit_buffer(struct jpeg_source_mgr *src, bitread_perm_state *state)
{
  while (state->bits_left <= 48) {
    int c = 0;
    if (src->bytes_in_buffer) {
      src->bytes_in_buffer--;
      c = *src->next_input_byte++;
      if (c == 0xff && src->bytes_in_buffer) {
        src->bytes_in_buffer--;
        src->next_input_byte++;
      }
    }
    state->get_buffer = state->get_buffer << 8 | (unsigned long)c;
    state->bits_left += 8;
  }
}

#define CHECK_BIT_BUFFER(n) if (state->bits_left < (n)) jpeg_fill_bit_buffer(cinfo->src, state)
#define GET_BITS(n) ((int)(state->get_buffer >> (state->bits_left -= (n))) & ((1 << (n)) - 1))
#define PEEK_BITS(n) ((int)(state->get_buffer >> (state->bits_left - (n))) & ((1 << (n)) - 1))
#define HUFF_EXTEND(x, s) ((x) < (1 << ((s) - 1)) ? (x) - (1 << (s)) + 1 : (x))

LOCAL(int)
huff_decode(j_ptr cinfo, huff_entropy_decoder *entropy, bitread_perm_state *state, const d_derived_tbl *htbl)
{
  int look, nb, code;
  CHECK_BIT_BUFFER(16);
  look = htbl->lookup[PEEK_BITS(HUFF_LOOKAHEAD)];
  if ((nb = look >> HUFF_LOOKAHEAD) != 0) {
    state->bits_left -= nb;
    entropy->fast++;
    return look & 0xff;
  }
  entropy->slow++;
  for (nb = HUFF_LOOKAHEAD + 1, code = GET_BITS(HUFF_LOOKAHEAD + 1); code > htbl->maxcode[nb]; nb++) code = code << 1 | GET_BITS(1);
  if (nb > 16) (*cinfo->err->error_exit) (cinfo);
  return htbl->pub->huffval[code + htbl->valoffset[nb]];
}

METHODDEF(boolean)
decode_mcu(j_ptr cinfo, JDIMENSION mcu_row, JDIMENSION mcu_col)
{
  huff_entropy_decoder *entropy = (huff_entropy_decoder *)cinfo->entropy_dec;
  bitread_perm_state *state = &entropy->bitstate;
  for (jpeg_component_info *compptr = cinfo->comp_info; compptr < cinfo->comp_info + cinfo->num_components; compptr++) {
    const d_derived_tbl *dctbl = entropy->dc_derived_tbls[compptr->dc_tbl_no], *actbl = entropy->ac_derived_tbls[compptr->ac_tbl_no];
    for (int b = 0; b < compptr->v_samp_factor * compptr->h_samp_factor; b++) {
      int y = b / compptr->h_samp_factor, x = b % compptr->h_samp_factor, s, r;
      JCOEF *block = compptr->coefs[mcu_row * compptr->v_samp_factor + y][mcu_col * compptr->h_samp_factor + x];
      for (int k = 0; k < DCTSIZE2; k++) block[k] = 0;
      if ((s = huff_decode(cinfo, entropy, state, dctbl)) != 0) {
        CHECK_BIT_BUFFER(s);
        r = GET_BITS(s);
        s = HUFF_EXTEND(r, s);
      }
      block[0] = (JCOEF)(entropy->saved.last_dc_val[compptr->component_index] += s);
      for (int k = 1; k < DCTSIZE2; k++) {
        s = huff_decode(cinfo, entropy, state, actbl);
        r = s >> 4;
        s &= 15;
        if (s == 0) {
          if (r != 15) break;
          k += 15;
          continue;
        }
        k += r;
        CHECK_BIT_BUFFER(s);
        r = GET_BITS(s);
        if (k >= DCTSIZE2) return FALSE;
        block[jpeg_natural_order[k]] = (JCOEF)HUFF_EXTEND(r, s);
      }
    }
  }
  return TRUE;
}

METHODDEF(void)
start_pass_huff_decoder(j_ptr cinfo)
{
  huff_entropy_decoder *entropy = (huff_entropy_decoder *)cinfo->entropy_dec;
  for (int t = 0; t < NUM_HUFF_TBLS; t++) {
    jpeg_make_d_derived_tbl(cinfo->dc_huff_tbl_ptrs[t], entropy->dc_derived_tbls[t]);
    jpeg_make_d_derived_tbl(cinfo->ac_huff_tbl_ptrs[t], entropy->ac_derived_tbls[t]);
  }
  entropy->bitstate.get_buffer = 0;
  entropy->bitstate.bits_left = 0;
  for (int ci = 0; ci < MAX_COMPONENTS; ci++) entropy->saved.last_dc_val[ci] = 0;
}

LOCAL(void)
jinit_huff(j_ptr cinfo)
{
  huff_entropy_encoder *e = HEAP_CALLOC(huff_entropy_encoder, 1);
  huff_entropy_decoder *d = HEAP_CALLOC(huff_entropy_decoder, 1);
  for (int t = 0; t < NUM_HUFF_TBLS; t++) {
    e->dc_count_ptrs[t] = HEAP_CALLOC(int, 257);
    e->ac_count_ptrs[t] = HEAP_CALLOC(int, 257);
    e->dc_derived_tbls[t] = HEAP_CALLOC(c_derived_tbl, 1);
    e->ac_derived_tbls[t] = HEAP_CALLOC(c_derived_tbl, 1);
    d->dc_derived_tbls[t] = HEAP_CALLOC(d_derived_tbl, 1);
    d->ac_derived_tbls[t] = HEAP_CALLOC(d_derived_tbl, 1);
    cinfo->dc_huff_tbl_ptrs[t] = HEAP_CALLOC(JHUFF_TBL, 1);
    cinfo->ac_huff_tbl_ptrs[t] = HEAP_CALLOC(JHUFF_TBL, 1);
  }
  e->pub.start_pass = start_pass_huff;
  e->pub.encode_mcu = encode_mcu_huff;
  e->pub.finish_pass = finish_pass_huff;
  d->pub.start_pass = start_pass_huff_decoder;
  d->pub.decode_mcu = decode_mcu;
  cinfo->entropy = &e->pub;
  cinfo->entropy_dec = &d->pub;
}

/* ---- back to samples ---- */

typedef struct {
  struct jpeg_inverse_dct pub;
  float *multipliers[NUM_QUANT_TBLS];
  JSAMPLE *range_limit;       /* from -256 to 511 */
  float workspace[DCTSIZE2];
} my_idct;

METHODDEF(void)
jpeg_idct_float(j_ptr cinfo, jpeg_component_info *compptr, const JCOEF *coef_block, JSAMPARRAY output, JDIMENSION col)
{
  my_idct *idct = (my_idct *)cinfo->idct;
  const float *quantptr = idct->multipliers[compptr->quant_tbl_no];
  float *wsptr = idct->workspace;
  const JSAMPLE *range_limit = idct->range_limit + 256;
  for (int pass = 0; pass < 2; pass++)
    for (int ctr = 0; ctr < DCTSIZE; ctr++) {
      float v[DCTSIZE], t10, t11, t12, t13, z5, t0, t1, t2, t3, t4, t5, t6, t7, z10, z11, z12, z13;
      for (int k = 0; k < DCTSIZE; k++)
        v[k] = pass ? wsptr[ctr * DCTSIZE + k] : (float)coef_block[k * DCTSIZE + ctr] * quantptr[k * DCTSIZE + ctr];
      t10 = v[0] + v[4], t11 = v[0] - v[4], t13 = v[2] + v[6], t12 = (v[2] - v[6]) * 1.414213562f - t13;
      t0 = t10 + t13, t3 = t10 - t13, t1 = t11 + t12, t2 = t11 - t12;
      z13 = v[5] + v[3], z10 = v[5] - v[3], z11 = v[1] + v[7], z12 = v[1] - v[7];
      t7 = z11 + z13, t11 = (z11 - z13) * 1.414213562f;
      z5 = (z10 + z12) * 1.847759065f;
      t10 = z5 - z12 * 1.082392200f, t12 = z5 - z10 * 2.613125930f;
      t6 = t12 - t7, t5 = t11 - t6, t4 = t10 - t5;
      v[0] = t0 + t7, v[7] = t0 - t7, v[1] = t1 + t6, v[6] = t1 - t6, v[2] = t2 + t5, v[5] = t2 - t5, v[3] = t3 + t4, v[4] = t3 - t4;
      if (pass == 0)
        for (int k = 0; k < DCTSIZE; k++) wsptr[k * DCTSIZE + ctr] = v[k];
      else {
        JSAMPROW outptr = output[ctr] + col;
        for (int k = 0; k < DCTSIZE; k++) {
          int s = (int)(v[k] + 128.5f);
          outptr[k] = range_limit[s < -256 ? -256 : s > 511 ? 511 : s];
        }
      }
    }
}

METHODDEF(void)
jpeg_idct_1x1(j_ptr cinfo, jpeg_component_info *compptr, const JCOEF *coef_block, JSAMPARRAY output, JDIMENSION col)
{
  my_idct *idct = (my_idct *)cinfo->idct;
  int dc = (int)((float)coef_block[0] * idct->multipliers[compptr->quant_tbl_no][0] + 128.5f);
  JSAMPLE v = idct->range_limit[256 + (dc < -256 ? -256 : dc > 511 ? 511 : dc)];
  for (int r = 0; r < DCTSIZE; r++)
    for (int c = 0; c < DCTSIZE; c++) output[r][col + c] = v;
}

LOCAL(void)
jinit_inverse_dct(j_ptr cinfo)
{
  static const float aanscalefactor[DCTSIZE] = { 1.0f, 1.387039845f, 1.306562965f, 1.175875602f, 1.0f, 0.785694958f, 0.541196100f, 0.275899379f };
  my_idct *idct = HEAP_CALLOC(my_idct, 1);
  for (int n = 0; n < NUM_QUANT_TBLS; n++) {
    idct->multipliers[n] = HEAP_CALLOC(float, DCTSIZE2);
    for (int i = 0; i < DCTSIZE2; i++)
      idct->multipliers[n][i] = cinfo->quant_tbl_ptrs[n]->quantval[i] * aanscalefactor[i / 8] * aanscalefactor[i % 8] / 8;
  }
  idct->range_limit = HEAP_CALLOC(unsigned char, 768);
  for (int i = 0; i < 768; i++) idct->range_limit[i] = (JSAMPLE)(i < 256 ? 0 : i > 511 ? 255 : i - 256);
  for (int ci = 0; ci < MAX_COMPONENTS; ci++) idct->pub.inverse_DCT[ci] = jpeg_idct_float;
  cinfo->idct = &idct->pub;
}

static struct quality_stats { unsigned long pictures, bytes, squares, samples; } quality_stats;

LOCAL(NOINLINE void)
ycc_rgb_convert(j_ptr cinfo, JDIMENSION row)
{
  const JSAMPLE *limit = ((my_idct *)cinfo->idct)->range_limit + 256;
  JSAMPROW in0 = cinfo->comp_info[0].plane[row], in1 = cinfo->comp_info[1].plane[row / 2], in2 = cinfo->comp_info[2].plane[row / 2];
  JSAMPROW outptr = cinfo->output[row], orig = cinfo->image[row];
  unsigned long squares = 0;
  for (JDIMENSION col = 0; col < cinfo->image_width; col++, outptr += 3, orig += 3) {
    int y = in0[col], cb = in1[col / 2] - 128, cr = in2[col / 2] - 128;
    outptr[0] = limit[y + (FIX(1.40200) * cr >> SCALEBITS)];
    outptr[1] = limit[y - ((FIX(0.34414) * cb + FIX(0.71414) * cr) >> SCALEBITS)];
    outptr[2] = limit[y + (FIX(1.77200) * cb >> SCALEBITS)];
    squares += (unsigned long)((outptr[1] - orig[1]) * (outptr[1] - orig[1]));
  }
  quality_stats.squares += squares;
  quality_stats.samples += cinfo->image_width;
}

/* ---- one picture ---- */

METHODDEF(void) error_exit(j_ptr cinfo) { longjmp(cinfo->err->setjmp_buffer, 1); }

METHODDEF(void)
empty_mem_output_buffer(j_ptr cinfo)
{
  struct jpeg_destination_mgr *dest = cinfo->dest;
  size_t used = dest->size;
  dest->buffer = HEAP_REALLOC(dest->buffer, unsigned char, dest->size *= 2);
  dest->next_output_byte = dest->buffer + used;
  dest->free_in_buffer = dest->size - used;
}

LOCAL(void)
each_mcu(j_ptr cinfo, void (*work) (j_ptr, JDIMENSION, JDIMENSION))
{
  for (JDIMENSION row = 0; row < cinfo->mcu_rows; row++)
    for (JDIMENSION col = 0; col < cinfo->mcus_per_row; col++) (*work) (cinfo, row, col);
}

LOCAL(NOINLINE void)
compress(j_ptr cinfo)
{
  for (JDIMENSION row = 0; row < cinfo->image_height; row += 16) (*cinfo->cconvert->color_convert) (cinfo, row, 16);
  for (jpeg_component_info *c = cinfo->comp_info; c < cinfo->comp_info + cinfo->num_components; c++)
    for (JDIMENSION row = 0; row < c->height_in_blocks; row++) (*cinfo->fdct->forward_DCT) (cinfo, c, row);
  cinfo->dest->next_output_byte = cinfo->dest->buffer;
  cinfo->dest->free_in_buffer = cinfo->dest->size;
  for (int gather = TRUE; gather >= FALSE; gather--) {
    (*cinfo->entropy->start_pass) (cinfo, gather);
    each_mcu(cinfo, cinfo->entropy->encode_mcu);
    (*cinfo->entropy->finish_pass) (cinfo);
  }
}

LOCAL(NOINLINE int)
decompress(j_ptr cinfo)
{
  if (setjmp(cinfo->err->setjmp_buffer)) {
    cinfo->err->num_warnings++;
    return 0;
  }
  cinfo->src->next_input_byte = cinfo->dest->buffer;
  cinfo->src->bytes_in_buffer = (size_t)(cinfo->dest->next_output_byte - cinfo->dest->buffer);
  (*cinfo->entropy_dec->start_pass) (cinfo);
  for (JDIMENSION row = 0; row < cinfo->mcu_rows; row++)
    for (JDIMENSION col = 0; col < cinfo->mcus_per_row; col++)
      if (!(*cinfo->entropy_dec->decode_mcu) (cinfo, row, col)) return 0;
  for (int ci = 0; ci < cinfo->num_components; ci++) {
    jpeg_component_info *c = &cinfo->comp_info[ci];
    for (JDIMENSION row = 0; row < c->height_in_blocks; row++)
      for (JDIMENSION b = 0; b < c->width_in_blocks; b++)
        (*cinfo->idct->inverse_DCT[ci]) (cinfo, c, c->coefs[row][b], c->plane + row * DCTSIZE, b * DCTSIZE);
  }
  for (JDIMENSION row = 0; row < cinfo->image_height; row++) ycc_rgb_convert(cinfo, row);
  return 1;
}

LOCAL(JSAMPARRAY)
alloc_sarray(JDIMENSION width, JDIMENSION rows)
{
  JSAMPARRAY result = HEAP_CALLOC(unsigned char *, rows);
  for (JDIMENSION i = 0; i < rows; i++) result[i] = HEAP_CALLOC(unsigned char, width);
  return result;
}

LOCAL(j_ptr)
jpeg_create(JDIMENSION width, JDIMENSION height, int quality)
{
  j_ptr cinfo = HEAP_CALLOC(struct jpeg_struct, 1);
  cinfo->err = HEAP_CALLOC(struct jpeg_error_mgr, 1);
  cinfo->err->error_exit = error_exit;
  cinfo->image_width = width;
  cinfo->image_height = height;
  cinfo->num_components = 3;
  cinfo->quality = quality;
  cinfo->mcus_per_row = width / 16;
  cinfo->mcu_rows = height / 16;
  for (int t = 0; t < NUM_QUANT_TBLS; t++) {
    cinfo->quant_tbl_ptrs[t] = HEAP_CALLOC(JQUANT_TBL, 1);
    for (int i = 0; i < DCTSIZE2; i++) cinfo->quant_tbl_ptrs[t]->quantval[i] = (UINT16)(2 + (12 + (i / 8 + i % 8) * (9 + 4 * t)) * (100 - quality) / 50);
  }
  for (int ci = 0; ci < 3; ci++) {
    jpeg_component_info *c = &cinfo->comp_info[ci];
    c->component_id = ci + 1;
    c->component_index = ci;
    c->h_samp_factor = c->v_samp_factor = ci ? 1 : 2;
    c->quant_tbl_no = c->dc_tbl_no = c->ac_tbl_no = ci ? 1 : 0;
    c->width_in_blocks = cinfo->mcus_per_row * (JDIMENSION)c->h_samp_factor;
    c->height_in_blocks = cinfo->mcu_rows * (JDIMENSION)c->v_samp_factor;
    c->plane = alloc_sarray(c->width_in_blocks * DCTSIZE, c->height_in_blocks * DCTSIZE);
    c->coefs = HEAP_CALLOC(JBLOCK *, c->height_in_blocks);
    for (JDIMENSION row = 0; row < c->height_in_blocks; row++) c->coefs[row] = (JBLOCKROW)HEAP_CALLOC(short, c->width_in_blocks * DCTSIZE2);
  }
  cinfo->image = alloc_sarray(3 * width, height);
  cinfo->output = alloc_sarray(3 * width, height);
  cinfo->dest = HEAP_CALLOC(struct jpeg_destination_mgr, 1);
  cinfo->dest->buffer = HEAP_CALLOC(unsigned char, cinfo->dest->size = 4096);
  cinfo->dest->empty_output_buffer = empty_mem_output_buffer;
  cinfo->src = HEAP_CALLOC(struct jpeg_source_mgr, 1);
  jinit_color_converter(cinfo);
  jinit_forward_dct(cinfo);
  jinit_huff(cinfo);
  jinit_inverse_dct(cinfo);
  if (quality < 50) cinfo->idct->inverse_DCT[2] = jpeg_idct_1x1;
  return cinfo;
}

LOCAL(void)
draw(j_ptr cinfo, unsigned int kind)
{
  for (JDIMENSION y = 0; y < cinfo->image_height; y++)
    for (JDIMENSION x = 0; x < cinfo->image_width; x++) {
      JSAMPROW p = cinfo->image[y] + 3 * x;
      unsigned int noise = (unsigned int)(tr_rand() >> 60);
      p[0] = (JSAMPLE)(kind & 1 ? x * 3 + noise : (x ^ y) & 31 ? 40 + y : 200);
      p[1] = (JSAMPLE)((x * x + y * y) / 64 + noise);
      p[2] = (JSAMPLE)(x / 16 * 40 + y / 16 * 25 + kind * 20);
    }
}

int
main(int argc, char **argv)
{
  j_ptr coders[3];
  unsigned int turn = 0;
  tr_init(argc, argv);
  TR_GLOBAL(quality_stats, "struct quality_stats");
  TR_GLOBAL(jpeg_natural_order, "int []");
  TR_CHECK(jpeg_component_info, quant_table);
  TR_CHECK(huff_entropy_decoder, slow);
  TR_CHECK(d_derived_tbl, lookup);
  TR_CHECK(struct jpeg_struct, idct);
  for (unsigned int i = 0; i < 3; i++) draw(coders[i] = jpeg_create(64 + 32 * i, 48 + 16 * i, 90 - 25 * (int)i), i);
  for (; tr_more(); turn++) {
    j_ptr cinfo = coders[turn % 3];
    compress(cinfo);
    if (!decompress(cinfo)) abort();
    quality_stats.pictures++;
    quality_stats.bytes += (unsigned long)(cinfo->dest->next_output_byte - cinfo->dest->buffer);
  }
  if (getenv("VERBOSE"))
    printf("%lu pictures, %lu bytes each, error %lu\n", quality_stats.pictures, quality_stats.bytes / quality_stats.pictures,
           quality_stats.squares / quality_stats.samples);
  tr_sink = quality_stats.squares;
  return 0;
}
