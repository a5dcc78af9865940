/*
 * jpeg.c
 *
 * A still image coder in the way of the baseline process: colour conversion by tables, sampling of
 * chroma, integer DCT, quantisation, Huffman codes; the way back with smoothing of edges; and
 * the filters of PNG over what comes out.
 */
#include "../heap.h"

#define METHODDEF(type) static type
#define LOCAL(type)     static type
#define GLOBAL(type)    static NOINLINE type
#define MAX_COMPS 3
#define DCTSIZE   8
#define DCTSIZE2  64
#define SCALEBITS 16
#define ONE_HALF  (1 << (SCALEBITS - 1))
#define FIX(x)    ((INT32) ((x) * (1L << SCALEBITS) + 0.5))
#define CENTER    128
#define HUFF_LOOKAHEAD 8
#define RANGE_MASK 1023

typedef unsigned char JSAMPLE;
typedef JSAMPLE *JSAMPROW;
typedef JSAMPROW *JSAMPARRAY;
typedef JSAMPARRAY *JSAMPIMAGE;
typedef short JCOEF;
typedef JCOEF JBLOCK[DCTSIZE2];
typedef JBLOCK *JBLOCKROW;
typedef unsigned int JDIMENSION;
typedef unsigned char JOCTET;
typedef unsigned char UINT8;
typedef unsigned short UINT16;
typedef int INT32;
typedef int DCTELEM;
typedef int boolean;

typedef struct {
  UINT16 quantval[DCTSIZE2];
  boolean sent_table;
} JQUANT_TBL;

typedef struct {
  UINT8 bits[17];               /* how many codes there are of each length */
  UINT8 huffval[256];
} JHUFF_TBL;

typedef struct {
  unsigned int ehufco[256];
  char ehufsi[256];
} c_derived_tbl;

typedef struct {
  INT32 maxcode[18];
  INT32 valoffset[18];
  JHUFF_TBL *pub;
  int lookup[1 << HUFF_LOOKAHEAD];
} d_derived_tbl;

typedef struct {
  int component_id, component_index;
  int h_samp_factor, v_samp_factor;
  int tbl_no;
  JDIMENSION width_in_blocks, height_in_blocks;
  JDIMENSION downsampled_width;
  JQUANT_TBL *quant_table;
  JSAMPARRAY samples;
  JBLOCKROW coefs;              /* row after row */
} jpeg_component_info;

typedef struct codec_struct *j_ptr;

struct jpeg_color_converter {
  void (*start_pass) (j_ptr cinfo);
  void (*color_convert) (j_ptr cinfo, JSAMPARRAY input_buf, JSAMPIMAGE output_buf, JDIMENSION output_row, int num_rows);
};

struct jpeg_forward_dct {
  void (*start_pass) (j_ptr cinfo);
  void (*forward_DCT) (j_ptr cinfo, jpeg_component_info *compptr, JSAMPARRAY sample_data, JBLOCKROW coef_blocks, JDIMENSION start_row, JDIMENSION num_blocks);
};

struct jpeg_inverse_dct {
  void (*start_pass) (j_ptr cinfo);
  void (*inverse_DCT[MAX_COMPS]) (j_ptr cinfo, jpeg_component_info *compptr, JCOEF *coef_block, JSAMPARRAY output_buf, JDIMENSION output_col);
};

struct jpeg_entropy {
  void (*start_pass) (j_ptr cinfo, boolean gather_statistics);
  boolean (*code_mcu) (j_ptr cinfo, JCOEF **MCU_data);
  unsigned long insufficient_data;
};

struct jpeg_destination_mgr {
  JOCTET *next_output_byte;
  size_t free_in_buffer;
  JOCTET *buffer;
};

struct codec_struct {
  JDIMENSION image_width, image_height;
  int num_components;
  jpeg_component_info comp_info[MAX_COMPS];
  JQUANT_TBL *quant_tbl_ptrs[2];
  JHUFF_TBL *dc_huff_tbl_ptrs[2], *ac_huff_tbl_ptrs[2];
  int blocks_in_MCU, MCU_membership[10];
  JDIMENSION MCUs_per_row, MCU_rows;
  JSAMPLE *sample_range_limit;
  struct jpeg_destination_mgr *dest;
  struct jpeg_color_converter *cconvert, *cdeconvert;
  struct jpeg_forward_dct *fdct;
  struct jpeg_inverse_dct *idct;
  struct jpeg_entropy *enc, *dec;
};

typedef struct {
  struct jpeg_color_converter pub;
  INT32 *rgb_ycc_tab;
} my_color_converter;

typedef struct {
  struct jpeg_color_converter pub;
  int *Cr_r_tab, *Cb_b_tab;
  INT32 *Cr_g_tab, *Cb_g_tab;
} my_color_deconverter;

typedef struct {
  struct jpeg_forward_dct pub;
  DCTELEM *divisors[2];
  DCTELEM workspace[DCTSIZE2];
} my_fdct_controller;

typedef struct {
  struct jpeg_inverse_dct pub;
  int *dct_table[MAX_COMPS];
} my_idct_controller;

typedef struct {
  int put_bits;
  unsigned int put_buffer;
  int last_dc_val[MAX_COMPS];
} savable_state;

typedef struct {
  struct jpeg_entropy pub;
  savable_state saved;
  c_derived_tbl *dc_derived_tbls[2], *ac_derived_tbls[2];
  long *dc_count_ptrs[2], *ac_count_ptrs[2];
} huff_entropy_encoder;

typedef struct {
  struct jpeg_entropy pub;
  unsigned int get_buffer;
  int bits_left;
  JOCTET *next_input_byte;
  int last_dc_val[MAX_COMPS];
  d_derived_tbl *dc_derived_tbls[2], *ac_derived_tbls[2];
} huff_entropy_decoder;

typedef struct {
  JSAMPLE **rows;
  UINT8 *filter_types;
  JSAMPLE *try_row[5];
  unsigned long chosen[5];
} png_writer;

typedef struct {
  const char *name;
  JSAMPLE **rgb;
  unsigned long error;
} picture;

static const int natural_order[DCTSIZE2 + 16] = {
   0,  1,  8, 16,  9,  2,  3, 10, 17, 24, 32, 25, 18, 11,  4,  5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13,  6,  7, 14, 21, 28,
  35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
  63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63
};
static UINT8 nbits_table[2048];
static unsigned long total_bytes, total_blocks;

/* ---------- memory ---------- */

LOCAL(JSAMPARRAY)
alloc_sarray (JDIMENSION samplesperrow, JDIMENSION numrows)
{
  JSAMPARRAY result = HEAP_CALLOC(unsigned char *, numrows);
  JSAMPROW workspace = HEAP_CALLOC(unsigned char, samplesperrow * numrows);

  for (JDIMENSION currow = 0; currow < numrows; currow++) {
    result[currow] = workspace;
    workspace += samplesperrow;
  }
  return result;
}

/* ---------- colours ---------- */

#define R_Y_OFF   0
#define G_Y_OFF   256
#define B_Y_OFF   512
#define R_CB_OFF  768
#define G_CB_OFF  1024
#define B_CB_OFF  1280
#define G_CR_OFF  1536
#define B_CR_OFF  1792
#define TABLE_SIZE 2048

METHODDEF(void)
rgb_ycc_start (j_ptr cinfo)
{
  my_color_converter *cconvert = (my_color_converter *) cinfo->cconvert;
  INT32 *tab = cconvert->rgb_ycc_tab = HEAP_CALLOC(int, TABLE_SIZE);

  for (INT32 i = 0; i < 256; i++) {
    tab[i + R_Y_OFF] = FIX(0.29900) * i;
    tab[i + G_Y_OFF] = FIX(0.58700) * i;
    tab[i + B_Y_OFF] = FIX(0.11400) * i + ONE_HALF;
    tab[i + R_CB_OFF] = -FIX(0.16874) * i;
    tab[i + G_CB_OFF] = -FIX(0.33126) * i;
    tab[i + B_CB_OFF] = FIX(0.50000) * i + (CENTER << SCALEBITS) + ONE_HALF - 1;
    tab[i + G_CR_OFF] = -FIX(0.41869) * i;
    tab[i + B_CR_OFF] = -FIX(0.08131) * i;
  }
}

METHODDEF(void)
rgb_ycc_convert (j_ptr cinfo, JSAMPARRAY input_buf, JSAMPIMAGE output_buf, JDIMENSION output_row, int num_rows)
{
  my_color_converter *cconvert = (my_color_converter *) cinfo->cconvert;
  INT32 *ctab = cconvert->rgb_ycc_tab;
  JDIMENSION num_cols = cinfo->image_width;

  while (--num_rows >= 0) {
    JSAMPROW inptr = *input_buf++;
    JSAMPROW outptr0 = output_buf[0][output_row];
    JSAMPROW outptr1 = output_buf[1][output_row];
    JSAMPROW outptr2 = output_buf[2][output_row];
    output_row++;
    for (JDIMENSION col = 0; col < num_cols; col++) {
      int r = inptr[0], g = inptr[1], b = inptr[2];
      inptr += 3;
      outptr0[col] = (JSAMPLE) ((ctab[r + R_Y_OFF] + ctab[g + G_Y_OFF] + ctab[b + B_Y_OFF]) >> SCALEBITS);
      outptr1[col] = (JSAMPLE) ((ctab[r + R_CB_OFF] + ctab[g + G_CB_OFF] + ctab[b + B_CB_OFF]) >> SCALEBITS);
      outptr2[col] = (JSAMPLE) ((ctab[r + B_CB_OFF] + ctab[g + G_CR_OFF] + ctab[b + B_CR_OFF]) >> SCALEBITS);
    }
  }
}

METHODDEF(void)
ycc_rgb_start (j_ptr cinfo)
{
  my_color_deconverter *cconvert = (my_color_deconverter *) cinfo->cdeconvert;

  cconvert->Cr_r_tab = HEAP_CALLOC(int, 256);
  cconvert->Cb_b_tab = HEAP_CALLOC(int, 256);
  cconvert->Cr_g_tab = HEAP_CALLOC(int, 256);
  cconvert->Cb_g_tab = HEAP_CALLOC(int, 256);
  for (INT32 i = 0, x = -CENTER; i < 256; i++, x++) {
    cconvert->Cr_r_tab[i] = (FIX(1.40200) * x + ONE_HALF) >> SCALEBITS;
    cconvert->Cb_b_tab[i] = (FIX(1.77200) * x + ONE_HALF) >> SCALEBITS;
    cconvert->Cr_g_tab[i] = -FIX(0.71414) * x;
    cconvert->Cb_g_tab[i] = -FIX(0.34414) * x + ONE_HALF;
  }
}

METHODDEF(void)
ycc_rgb_convert (j_ptr cinfo, JSAMPARRAY output_buf, JSAMPIMAGE input_buf, JDIMENSION input_row, int num_rows)
{
  my_color_deconverter *cconvert = (my_color_deconverter *) cinfo->cdeconvert;
  JSAMPLE *range_limit = cinfo->sample_range_limit + 256;
  int *Crrtab = cconvert->Cr_r_tab, *Cbbtab = cconvert->Cb_b_tab;
  INT32 *Crgtab = cconvert->Cr_g_tab, *Cbgtab = cconvert->Cb_g_tab;

  while (--num_rows >= 0) {
    JSAMPROW inptr0 = input_buf[0][input_row];
    JSAMPROW inptr1 = input_buf[1][input_row / 2];
    JSAMPROW inptr2 = input_buf[2][input_row / 2];
    JSAMPROW outptr = *output_buf++;
    input_row++;
    for (JDIMENSION col = 0; col < cinfo->image_width; col++) {
      int y = inptr0[col], cb = inptr1[col / 2], cr = inptr2[col / 2];
      outptr[0] = range_limit[y + Crrtab[cr]];
      outptr[1] = range_limit[y + ((Cbgtab[cb] + Crgtab[cr]) >> SCALEBITS)];
      outptr[2] = range_limit[y + Cbbtab[cb]];
      outptr += 3;
    }
  }
}

GLOBAL(void)
h2v2_downsample (jpeg_component_info *compptr, JSAMPARRAY input_data, JDIMENSION rows)
{
  for (JDIMENSION outrow = 0; outrow < rows; outrow++) {
    JSAMPROW outptr = compptr->samples[outrow];
    JSAMPROW inptr0 = input_data[outrow * 2], inptr1 = input_data[outrow * 2 + 1];
    int bias = 1;
    for (JDIMENSION outcol = 0; outcol < compptr->downsampled_width; outcol++) {
      *outptr++ = (JSAMPLE) ((inptr0[0] + inptr0[1] + inptr1[0] + inptr1[1] + bias) >> 2);
      bias ^= 3;
      inptr0 += 2; inptr1 += 2;
    }
  }
}

/* ---------- cosines ---------- */

#define MULTIPLY(v, c) (((v) * (c)) >> 8)

LOCAL(void)
jpeg_fdct_ifast (DCTELEM *data)
{
  DCTELEM *dataptr = data;

  for (int pass = 0; pass < 2; pass++) {
    int s = pass ? DCTSIZE : 1;
    dataptr = data;
    for (int ctr = DCTSIZE - 1; ctr >= 0; ctr--) {
      DCTELEM tmp0 = dataptr[s*0] + dataptr[s*7], tmp7 = dataptr[s*0] - dataptr[s*7];
      DCTELEM tmp1 = dataptr[s*1] + dataptr[s*6], tmp6 = dataptr[s*1] - dataptr[s*6];
      DCTELEM tmp2 = dataptr[s*2] + dataptr[s*5], tmp5 = dataptr[s*2] - dataptr[s*5];
      DCTELEM tmp3 = dataptr[s*3] + dataptr[s*4], tmp4 = dataptr[s*3] - dataptr[s*4];
      DCTELEM tmp10 = tmp0 + tmp3, tmp13 = tmp0 - tmp3, tmp11 = tmp1 + tmp2, tmp12 = tmp1 - tmp2;
      DCTELEM z1, z2, z3, z4, z5, z11, z13;

      dataptr[s*0] = tmp10 + tmp11;
      dataptr[s*4] = tmp10 - tmp11;
      z1 = MULTIPLY(tmp12 + tmp13, 181);
      dataptr[s*2] = tmp13 + z1;
      dataptr[s*6] = tmp13 - z1;
      tmp10 = tmp4 + tmp5;
      tmp11 = tmp5 + tmp6;
      tmp12 = tmp6 + tmp7;
      z5 = MULTIPLY(tmp10 - tmp12, 98);
      z2 = MULTIPLY(tmp10, 139) + z5;
      z4 = MULTIPLY(tmp12, 334) + z5;
      z3 = MULTIPLY(tmp11, 181);
      z11 = tmp7 + z3;
      z13 = tmp7 - z3;
      dataptr[s*5] = z13 + z2;
      dataptr[s*3] = z13 - z2;
      dataptr[s*1] = z11 + z4;
      dataptr[s*7] = z11 - z4;
      dataptr += pass ? 1 : DCTSIZE;
    }
  }
}

static const double aanscale[DCTSIZE] = { 1.0, 1.387039845, 1.306562965, 1.175875602, 1.0, 0.785694958, 0.541196100, 0.275899379 };

METHODDEF(void)
start_pass_fdctmgr (j_ptr cinfo)
{
  my_fdct_controller *fdct = (my_fdct_controller *) cinfo->fdct;

  for (int t = 0; t < 2; t++) {
    fdct->divisors[t] = HEAP_CALLOC(int, DCTSIZE2);
    for (int i = 0; i < DCTSIZE2; i++)
      fdct->divisors[t][i] = (int) (cinfo->quant_tbl_ptrs[t]->quantval[i] * aanscale[i / 8] * aanscale[i % 8] * 8.0 + 0.5);
  }
}

METHODDEF(void)
forward_DCT (j_ptr cinfo, jpeg_component_info *compptr, JSAMPARRAY sample_data, JBLOCKROW coef_blocks, JDIMENSION start_row, JDIMENSION num_blocks)
{
  my_fdct_controller *fdct = (my_fdct_controller *) cinfo->fdct;
  DCTELEM *divisors = fdct->divisors[compptr->tbl_no], *workspace = fdct->workspace;
  JDIMENSION start_col = 0;

  sample_data += start_row;
  for (JDIMENSION bi = 0; bi < num_blocks; bi++, start_col += DCTSIZE) {
    DCTELEM *workspaceptr = workspace;
    for (int elemr = 0; elemr < DCTSIZE; elemr++) {
      JSAMPROW elemptr = sample_data[elemr] + start_col;
      for (int elemc = 0; elemc < DCTSIZE; elemc++)
        *workspaceptr++ = *elemptr++ - CENTER;
    }
    jpeg_fdct_ifast(workspace);
    JCOEF *output_ptr = coef_blocks[bi];
    for (int i = 0; i < DCTSIZE2; i++) {
      DCTELEM qval = divisors[i], temp = workspace[i];
      if (temp < 0)
        temp = -((-temp + (qval >> 1)) / qval);
      else
        temp = (temp + (qval >> 1)) / qval;
      output_ptr[i] = (JCOEF) temp;
    }
    total_blocks++;
  }
}

METHODDEF(void)
start_pass_idct (j_ptr cinfo)
{
  my_idct_controller *idct = (my_idct_controller *) cinfo->idct;

  for (int ci = 0; ci < cinfo->num_components; ci++) {
    jpeg_component_info *compptr = &cinfo->comp_info[ci];
    idct->dct_table[ci] = HEAP_CALLOC(int, DCTSIZE2);
    for (int i = 0; i < DCTSIZE2; i++)
      idct->dct_table[ci][i] = (int) (compptr->quant_table->quantval[i] * aanscale[i / 8] * aanscale[i % 8] * 4.0 + 0.5);
  }
}

METHODDEF(void)
jpeg_idct_ifast (j_ptr cinfo, jpeg_component_info *compptr, JCOEF *coef_block, JSAMPARRAY output_buf, JDIMENSION output_col)
{
  my_idct_controller *idct = (my_idct_controller *) cinfo->idct;
  JSAMPLE *range_limit = cinfo->sample_range_limit + 256;
  int *quantptr = idct->dct_table[compptr->component_index], workspace[DCTSIZE2], v[DCTSIZE];

  for (int pass = 0; pass < 2; pass++)
    for (int ctr = 0; ctr < DCTSIZE; ctr++) {
      int s = pass ? 1 : DCTSIZE, *wsptr = pass ? workspace + ctr * DCTSIZE : workspace + ctr;
      if (!pass) {
        boolean zero = 1;
        for (int k = 1; k < DCTSIZE && zero; k++) zero = coef_block[ctr + k * DCTSIZE] == 0;
        if (zero) {
          int dcval = coef_block[ctr] * quantptr[ctr];
          for (int k = 0; k < DCTSIZE; k++) wsptr[k * DCTSIZE] = dcval;
          continue;
        }
        for (int k = 0; k < DCTSIZE; k++) v[k] = coef_block[ctr + k * DCTSIZE] * quantptr[ctr + k * DCTSIZE];
      } else
        for (int k = 0; k < DCTSIZE; k++) v[k] = wsptr[k];
      int tmp10 = v[0] + v[4], tmp11 = v[0] - v[4], tmp13 = v[2] + v[6], tmp12 = MULTIPLY(v[2] - v[6], 362) - tmp13;
      int tmp0 = tmp10 + tmp13, tmp3 = tmp10 - tmp13, tmp1 = tmp11 + tmp12, tmp2 = tmp11 - tmp12;
      int z13 = v[5] + v[3], z10 = v[5] - v[3], z11 = v[1] + v[7], z12 = v[1] - v[7];
      int tmp7 = z11 + z13, z5 = MULTIPLY(z10 + z12, 473);
      int tmp6 = MULTIPLY(z10, -669) + z5 - tmp7, tmp5 = MULTIPLY(z11 - z13, 362) - tmp6, tmp4 = MULTIPLY(z12, 277) - z5 + tmp5;
      wsptr[s*0] = tmp0 + tmp7; wsptr[s*7] = tmp0 - tmp7;
      wsptr[s*1] = tmp1 + tmp6; wsptr[s*6] = tmp1 - tmp6;
      wsptr[s*2] = tmp2 + tmp5; wsptr[s*5] = tmp2 - tmp5;
      wsptr[s*4] = tmp3 + tmp4; wsptr[s*3] = tmp3 - tmp4;
    }
  for (int row = 0; row < DCTSIZE; row++) {
    JSAMPROW outptr = output_buf[row] + output_col;
    for (int col = 0; col < DCTSIZE; col++) {
      int x = (workspace[row * DCTSIZE + col] >> 5) + CENTER;
      outptr[col] = range_limit[x < -256 ? -256 : x > 511 ? 511 : x];
    }
  }
}

/* ---------- codes ---------- */

LOCAL(void)
jpeg_make_c_derived_tbl (JHUFF_TBL *htbl, c_derived_tbl *dtbl)
{
  unsigned int code = 0;
  int p = 0;

  memset(dtbl, 0, sizeof *dtbl);
  for (int l = 1; l <= 16; l++, code <<= 1)
    for (int i = 0; i < htbl->bits[l]; i++, p++) {
      dtbl->ehufco[htbl->huffval[p]] = code++;
      dtbl->ehufsi[htbl->huffval[p]] = (char) l;
    }
}

LOCAL(void)
jpeg_make_d_derived_tbl (JHUFF_TBL *htbl, d_derived_tbl *dtbl)
{
  INT32 code = 0;
  int p = 0;

  dtbl->pub = htbl;
  for (int i = 0; i < 1 << HUFF_LOOKAHEAD; i++)
    dtbl->lookup[i] = (HUFF_LOOKAHEAD + 1) << HUFF_LOOKAHEAD;
  for (int l = 1; l <= 16; l++, code <<= 1) {
    dtbl->valoffset[l] = p - code;
    for (int i = 0; i < htbl->bits[l]; i++, p++, code++)
      if (l <= HUFF_LOOKAHEAD)
        for (int ctr = 0, lookbits = code << (HUFF_LOOKAHEAD - l); ctr < 1 << (HUFF_LOOKAHEAD - l); ctr++)
          dtbl->lookup[lookbits++] = l << HUFF_LOOKAHEAD | htbl->huffval[p];
    dtbl->maxcode[l] = htbl->bits[l] ? code - 1 : -1;
  }
  dtbl->valoffset[17] = 0;
  dtbl->maxcode[17] = 0xFFFFF;
}

GLOBAL(void)
jpeg_gen_optimal_table (JHUFF_TBL *htbl, long freq[])
{
  UINT8 bits[33];
  int codesize[257], others[257];

  memset(bits, 0, sizeof bits);
  memset(codesize, 0, sizeof codesize);
  for (int i = 0; i < 257; i++) others[i] = -1;
  freq[256] = 1;
  for (;;) {
    int c1 = -1, c2 = -1;
    long v = 1000000000L;
    for (int i = 0; i <= 256; i++)
      if (freq[i] && freq[i] <= v) { v = freq[i]; c1 = i; }
    v = 1000000000L;
    for (int i = 0; i <= 256; i++)
      if (freq[i] && freq[i] <= v && i != c1) { v = freq[i]; c2 = i; }
    if (c2 < 0) break;
    freq[c1] += freq[c2];
    freq[c2] = 0;
    for (codesize[c1]++; others[c1] >= 0; codesize[c1]++) c1 = others[c1];
    others[c1] = c2;
    for (codesize[c2]++; others[c2] >= 0; codesize[c2]++) c2 = others[c2];
  }
  for (int i = 0; i <= 256; i++)
    if (codesize[i]) bits[codesize[i] > 32 ? 32 : codesize[i]]++;
  for (int i = 32; i > 16; i--)
    while (bits[i] > 0) {
      int j = i - 2;
      while (bits[j] == 0) j--;
      bits[i] -= 2;
      bits[i - 1]++;
      bits[j + 1] += 2;
      bits[j]--;
    }
  int last = 16, p = 0;
  while (bits[last] == 0) last--;
  bits[last]--;
  memcpy(htbl->bits, bits, sizeof htbl->bits);
  for (int i = 1; i <= 32; i++)
    for (int j = 0; j < 256; j++)
      if (codesize[j] == i) htbl->huffval[p++] = (UINT8) j;
}

LOCAL(void)
emit_bits (huff_entropy_encoder *entropy, struct jpeg_destination_mgr *dest, unsigned int code, int size)
{
  unsigned int put_buffer = code & ((1u << size) - 1);
  int put_bits = entropy->saved.put_bits + size;

  put_buffer = put_buffer << (32 - put_bits) | entropy->saved.put_buffer;
  while (put_bits >= 8) {
    *dest->next_output_byte++ = (JOCTET) (put_buffer >> 24);
    dest->free_in_buffer--;
    put_buffer <<= 8;
    put_bits -= 8;
  }
  entropy->saved.put_buffer = put_buffer;
  entropy->saved.put_bits = put_bits;
}

#define NBITS(v) ((v) < 2048 ? nbits_table[v] : 12)

METHODDEF(boolean)
encode_mcu_gather (j_ptr cinfo, JCOEF **MCU_data)
{
  huff_entropy_encoder *entropy = (huff_entropy_encoder *) cinfo->enc;

  for (int blkn = 0; blkn < cinfo->blocks_in_MCU; blkn++) {
    int ci = cinfo->MCU_membership[blkn], tbl = cinfo->comp_info[ci].tbl_no, r = 0;
    JCOEF *block = MCU_data[blkn];
    int diff = block[0] - entropy->saved.last_dc_val[ci];
    entropy->saved.last_dc_val[ci] = block[0];
    entropy->dc_count_ptrs[tbl][NBITS(diff < 0 ? -diff : diff)]++;
    for (int k = 1; k < DCTSIZE2; k++) {
      int temp = block[natural_order[k]];
      if (temp == 0) { r++; continue; }
      for (; r > 15; r -= 16) entropy->ac_count_ptrs[tbl][0xF0]++;
      entropy->ac_count_ptrs[tbl][(r << 4) + NBITS(temp < 0 ? -temp : temp)]++;
      r = 0;
    }
    if (r > 0) entropy->ac_count_ptrs[tbl][0]++;
  }
  return 1;
}

METHODDEF(boolean)
encode_mcu_huff (j_ptr cinfo, JCOEF **MCU_data)
{
  huff_entropy_encoder *entropy = (huff_entropy_encoder *) cinfo->enc;

  for (int blkn = 0; blkn < cinfo->blocks_in_MCU; blkn++) {
    int ci = cinfo->MCU_membership[blkn], tbl = cinfo->comp_info[ci].tbl_no, r = 0;
    c_derived_tbl *dctbl = entropy->dc_derived_tbls[tbl], *actbl = entropy->ac_derived_tbls[tbl];
    JCOEF *block = MCU_data[blkn];
    int temp = block[0] - entropy->saved.last_dc_val[ci], nbits = NBITS(temp < 0 ? -temp : temp);
    entropy->saved.last_dc_val[ci] = block[0];
    emit_bits(entropy, cinfo->dest, dctbl->ehufco[nbits], dctbl->ehufsi[nbits]);
    if (nbits) emit_bits(entropy, cinfo->dest, (unsigned int) (temp < 0 ? temp - 1 : temp), nbits);
    for (int k = 1; k < DCTSIZE2; k++) {
      if ((temp = block[natural_order[k]]) == 0) { r++; continue; }
      for (; r > 15; r -= 16) emit_bits(entropy, cinfo->dest, actbl->ehufco[0xF0], actbl->ehufsi[0xF0]);
      nbits = NBITS(temp < 0 ? -temp : temp);
      int i = (r << 4) + nbits;
      emit_bits(entropy, cinfo->dest, actbl->ehufco[i], actbl->ehufsi[i]);
      emit_bits(entropy, cinfo->dest, (unsigned int) (temp < 0 ? temp - 1 : temp), nbits);
      r = 0;
    }
    if (r > 0) emit_bits(entropy, cinfo->dest, actbl->ehufco[0], actbl->ehufsi[0]);
  }
  return 1;
}

METHODDEF(void)
start_pass_huff (j_ptr cinfo, boolean gather_statistics)
{
  huff_entropy_encoder *entropy = (huff_entropy_encoder *) cinfo->enc;

  memset(&entropy->saved, 0, sizeof entropy->saved);
  entropy->pub.code_mcu = gather_statistics ? encode_mcu_gather : encode_mcu_huff;
  for (int tbl = 0; tbl < 2; tbl++)
    if (gather_statistics) {
      memset(entropy->dc_count_ptrs[tbl], 0, 257 * sizeof(long));
      memset(entropy->ac_count_ptrs[tbl], 0, 257 * sizeof(long));
    } else {
      jpeg_gen_optimal_table(cinfo->dc_huff_tbl_ptrs[tbl], entropy->dc_count_ptrs[tbl]);
      jpeg_gen_optimal_table(cinfo->ac_huff_tbl_ptrs[tbl], entropy->ac_count_ptrs[tbl]);
      jpeg_make_c_derived_tbl(cinfo->dc_huff_tbl_ptrs[tbl], entropy->dc_derived_tbls[tbl]);
      jpeg_make_c_derived_tbl(cinfo->ac_huff_tbl_ptrs[tbl], entropy->ac_derived_tbls[tbl]);
    }
}

LOCAL(void)
fill_bit_buffer (huff_entropy_decoder *entropy, int nbits)
{
  while (entropy->bits_left < nbits) {
    entropy->get_buffer = entropy->get_buffer << 8 | *entropy->next_input_byte++;
    entropy->bits_left += 8;
  }
}

#define GET_BITS(e, n) ((e)->get_buffer >> ((e)->bits_left -= (n)) & ((1u << (n)) - 1))

LOCAL(int)
huff_decode (huff_entropy_decoder *entropy, d_derived_tbl *htbl)
{
  fill_bit_buffer(entropy, 16);
  int look = entropy->get_buffer >> (entropy->bits_left - HUFF_LOOKAHEAD) & ((1 << HUFF_LOOKAHEAD) - 1);
  int nb = htbl->lookup[look] >> HUFF_LOOKAHEAD;
  if (nb <= HUFF_LOOKAHEAD) {
    entropy->bits_left -= nb;
    return htbl->lookup[look] & ((1 << HUFF_LOOKAHEAD) - 1);
  }
  INT32 code = GET_BITS(entropy, nb);
  while (code > htbl->maxcode[nb]) {
    code = code << 1 | GET_BITS(entropy, 1);
    nb++;
  }
  return htbl->pub->huffval[(code + htbl->valoffset[nb]) & 255];
}

#define HUFF_EXTEND(x, s) ((x) < 1 << ((s) - 1) ? (x) + (int) (~0u << (s)) + 1 : (x))

METHODDEF(boolean)
decode_mcu (j_ptr cinfo, JCOEF **MCU_data)
{
  huff_entropy_decoder *entropy = (huff_entropy_decoder *) cinfo->dec;

  for (int blkn = 0; blkn < cinfo->blocks_in_MCU; blkn++) {
    int ci = cinfo->MCU_membership[blkn], tbl = cinfo->comp_info[ci].tbl_no;
    JCOEF *block = MCU_data[blkn];
    int s = huff_decode(entropy, entropy->dc_derived_tbls[tbl]);
    if (s) {
      fill_bit_buffer(entropy, s);
      int r = GET_BITS(entropy, s);
      entropy->last_dc_val[ci] += HUFF_EXTEND(r, s);
    }
    for (int k = 0; k < DCTSIZE2; k++) block[k] = 0;
    block[0] = (JCOEF) entropy->last_dc_val[ci];
    for (int k = 1; k < DCTSIZE2; k++) {
      s = huff_decode(entropy, entropy->ac_derived_tbls[tbl]);
      int r = s >> 4;
      s &= 15;
      if (s) {
        k += r;
        fill_bit_buffer(entropy, s);
        r = GET_BITS(entropy, s);
        block[natural_order[k]] = (JCOEF) HUFF_EXTEND(r, s);
      } else if (r != 15)
        break;
      else
        k += 15;
    }
  }
  return 1;
}

METHODDEF(void)
start_pass_huff_decoder (j_ptr cinfo, boolean unused)
{
  huff_entropy_decoder *entropy = (huff_entropy_decoder *) cinfo->dec;

  (void) unused;
  entropy->get_buffer = entropy->bits_left = 0;
  entropy->next_input_byte = cinfo->dest->buffer;
  memset(entropy->last_dc_val, 0, sizeof entropy->last_dc_val);
  for (int tbl = 0; tbl < 2; tbl++) {
    jpeg_make_d_derived_tbl(cinfo->dc_huff_tbl_ptrs[tbl], entropy->dc_derived_tbls[tbl]);
    jpeg_make_d_derived_tbl(cinfo->ac_huff_tbl_ptrs[tbl], entropy->ac_derived_tbls[tbl]);
  }
}

/* ---------- passes ---------- */

GLOBAL(void)
code_all_MCUs (j_ptr cinfo, struct jpeg_entropy *entropy)
{
  JCOEF *MCU_buffer[10];

  for (JDIMENSION row = 0; row < cinfo->MCU_rows; row++)
    for (JDIMENSION col = 0; col < cinfo->MCUs_per_row; col++) {
      int blkn = 0;
      for (int ci = 0; ci < cinfo->num_components; ci++) {
        jpeg_component_info *compptr = &cinfo->comp_info[ci];
        for (int y = 0; y < compptr->v_samp_factor; y++)
          for (int x = 0; x < compptr->h_samp_factor; x++)
            MCU_buffer[blkn++] = compptr->coefs[(row * compptr->v_samp_factor + y) * compptr->width_in_blocks + col * compptr->h_samp_factor + x];
      }
      entropy->code_mcu(cinfo, MCU_buffer);
    }
}

GLOBAL(void)
compress_image (j_ptr cinfo, picture *pic, JSAMPIMAGE full)
{
  cinfo->cconvert->color_convert(cinfo, pic->rgb, full, 0, (int) cinfo->image_height);
  for (int ci = 0; ci < cinfo->num_components; ci++) {
    jpeg_component_info *compptr = &cinfo->comp_info[ci];
    if (ci) h2v2_downsample(compptr, full[ci], cinfo->image_height / 2);
    for (JDIMENSION row = 0; row < compptr->height_in_blocks; row++)
      cinfo->fdct->forward_DCT(cinfo, compptr, ci ? compptr->samples : full[0], compptr->coefs + row * compptr->width_in_blocks, row * DCTSIZE, compptr->width_in_blocks);
  }
  cinfo->dest->next_output_byte = cinfo->dest->buffer;
  cinfo->dest->free_in_buffer = 65536;
  for (int gather = 1; gather >= 0; gather--) {
    cinfo->enc->start_pass(cinfo, gather);
    code_all_MCUs(cinfo, cinfo->enc);
  }
  emit_bits((huff_entropy_encoder *) cinfo->enc, cinfo->dest, 0x7F, 7);
  total_bytes += cinfo->dest->next_output_byte - cinfo->dest->buffer;
}

GLOBAL(void)
decompress_image (j_ptr cinfo, JSAMPIMAGE full, JSAMPARRAY rgb)
{
  cinfo->dec->start_pass(cinfo, 0);
  code_all_MCUs(cinfo, cinfo->dec);
  for (int ci = 0; ci < cinfo->num_components; ci++) {
    jpeg_component_info *compptr = &cinfo->comp_info[ci];
    for (JDIMENSION row = 0; row < compptr->height_in_blocks; row++)
      for (JDIMENSION col = 0; col < compptr->width_in_blocks; col++)
        cinfo->idct->inverse_DCT[ci](cinfo, compptr, compptr->coefs[row * compptr->width_in_blocks + col], full[ci] + row * DCTSIZE, col * DCTSIZE);
  }
  cinfo->cdeconvert->color_convert(cinfo, rgb, full, 0, (int) cinfo->image_height);
}

/* ---------- filters of PNG ---------- */

LOCAL(int)
paeth (int a, int b, int c)
{
  int pa = b - c, pb = a - c, pc = pa + pb;

  if (pa < 0) pa = -pa;
  if (pb < 0) pb = -pb;
  if (pc < 0) pc = -pc;
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

GLOBAL(unsigned long)
png_filter_rows (png_writer *png, JSAMPARRAY rgb, JDIMENSION rowbytes, JDIMENSION height)
{
  unsigned long total = 0;

  for (JDIMENSION y = 1; y < height; y++) {
    JSAMPROW row = rgb[y], prev = rgb[y - 1];
    unsigned long best = ~0ul;
    for (int f = 0; f < 5; f++) {
      JSAMPROW dp = png->try_row[f];
      unsigned long sum = 0;
      for (JDIMENSION i = 3; i < rowbytes; i++) {
        int a = row[i - 3], b = prev[i], c = prev[i - 3];
        int p = f == 0 ? 0 : f == 1 ? a : f == 2 ? b : f == 3 ? (a + b) / 2 : paeth(a, b, c);
        dp[i] = (JSAMPLE) (row[i] - p);
        sum += dp[i] < 128 ? dp[i] : 256 - dp[i];
      }
      if (sum < best) {
        best = sum;
        png->filter_types[y] = (UINT8) f;
      }
    }
    JSAMPROW chosen = png->try_row[png->filter_types[y]], out = png->rows[y];
    for (JDIMENSION i = 0; i < rowbytes; i++) out[i] = chosen[i];
    png->chosen[png->filter_types[y]]++;
    total += best;
  }
  return total;
}

/* ---------- all together ---------- */

LOCAL(j_ptr)
create_codec (JDIMENSION width, JDIMENSION height, int quality)
{
  j_ptr cinfo = HEAP_CALLOC(struct codec_struct, 1);
  my_color_converter *cconvert = HEAP_CALLOC(my_color_converter, 1);
  my_color_deconverter *cdeconvert = HEAP_CALLOC(my_color_deconverter, 1);
  my_fdct_controller *fdct = HEAP_CALLOC(my_fdct_controller, 1);
  my_idct_controller *idct = HEAP_CALLOC(my_idct_controller, 1);
  huff_entropy_encoder *enc = HEAP_CALLOC(huff_entropy_encoder, 1);
  huff_entropy_decoder *dec = HEAP_CALLOC(huff_entropy_decoder, 1);

  cinfo->image_width = width;
  cinfo->image_height = height;
  cinfo->num_components = MAX_COMPS;
  for (int t = 0; t < 2; t++) {
    cinfo->quant_tbl_ptrs[t] = HEAP_CALLOC(JQUANT_TBL, 1);
    for (int i = 0; i < DCTSIZE2; i++)
      cinfo->quant_tbl_ptrs[t]->quantval[i] = (UINT16) (2 + (i / 8 + i % 8) * (2 + t) * 20 / quality);
    cinfo->dc_huff_tbl_ptrs[t] = HEAP_CALLOC(JHUFF_TBL, 1);
    cinfo->ac_huff_tbl_ptrs[t] = HEAP_CALLOC(JHUFF_TBL, 1);
    enc->dc_derived_tbls[t] = HEAP_CALLOC(c_derived_tbl, 1);
    enc->ac_derived_tbls[t] = HEAP_CALLOC(c_derived_tbl, 1);
    enc->dc_count_ptrs[t] = HEAP_CALLOC(long, 257);
    enc->ac_count_ptrs[t] = HEAP_CALLOC(long, 257);
    dec->dc_derived_tbls[t] = HEAP_CALLOC(d_derived_tbl, 1);
    dec->ac_derived_tbls[t] = HEAP_CALLOC(d_derived_tbl, 1);
  }
  for (int ci = 0; ci < MAX_COMPS; ci++) {
    jpeg_component_info *compptr = &cinfo->comp_info[ci];
    int f = ci ? 1 : 2;
    compptr->component_id = ci + 1;
    compptr->component_index = ci;
    compptr->h_samp_factor = compptr->v_samp_factor = f;
    compptr->tbl_no = ci > 0;
    compptr->downsampled_width = width * f / 2;
    compptr->width_in_blocks = width * f / 16;
    compptr->height_in_blocks = height * f / 16;
    compptr->quant_table = cinfo->quant_tbl_ptrs[ci > 0];
    compptr->samples = alloc_sarray(width * f / 2, height * f / 2);
    compptr->coefs = (JBLOCKROW) HEAP_CALLOC(short, compptr->width_in_blocks * compptr->height_in_blocks * DCTSIZE2);
    for (int i = 0; i < f * f; i++) cinfo->MCU_membership[cinfo->blocks_in_MCU++] = ci;
    idct->pub.inverse_DCT[ci] = jpeg_idct_ifast;
  }
  cinfo->MCUs_per_row = width / 16;
  cinfo->MCU_rows = height / 16;
  cinfo->sample_range_limit = HEAP_CALLOC(unsigned char, 768);
  for (int i = 0; i < 768; i++) cinfo->sample_range_limit[i] = (JSAMPLE) (i < 256 ? 0 : i < 512 ? i - 256 : 255);
  cinfo->dest = HEAP_CALLOC(struct jpeg_destination_mgr, 1);
  cinfo->dest->buffer = HEAP_CALLOC(unsigned char, 65536);
  cconvert->pub = (struct jpeg_color_converter) { rgb_ycc_start, rgb_ycc_convert };
  cdeconvert->pub = (struct jpeg_color_converter) { ycc_rgb_start, ycc_rgb_convert };
  fdct->pub = (struct jpeg_forward_dct) { start_pass_fdctmgr, forward_DCT };
  idct->pub.start_pass = start_pass_idct;
  enc->pub = (struct jpeg_entropy) { start_pass_huff, encode_mcu_huff, 0 };
  dec->pub = (struct jpeg_entropy) { start_pass_huff_decoder, decode_mcu, 0 };
  cinfo->cconvert = &cconvert->pub;
  cinfo->cdeconvert = &cdeconvert->pub;
  cinfo->fdct = &fdct->pub;
  cinfo->idct = &idct->pub;
  cinfo->enc = &enc->pub;
  cinfo->dec = &dec->pub;
  cinfo->cconvert->start_pass(cinfo);
  cinfo->cdeconvert->start_pass(cinfo);
  cinfo->fdct->start_pass(cinfo);
  cinfo->idct->start_pass(cinfo);
  return cinfo;
}

int
main (int argc, char **argv)
{
  enum { WIDTH = 96, HEIGHT = 64, PICTURES = 3 };
  j_ptr codecs[2];
  JSAMPARRAY full[MAX_COMPS], rgb;
  unsigned long sum = 0;

  tr_init(argc, argv);
  TR_GLOBAL(natural_order, "int []");
  TR_GLOBAL(nbits_table, "unsigned char []");
  TR_GLOBAL(aanscale, "double []");
  TR_GLOBAL(total_bytes, "unsigned long");
  TR_GLOBAL(total_blocks, "unsigned long");
  TR_CHECK(my_fdct_controller, divisors);
  TR_CHECK(huff_entropy_encoder, saved);
  TR_CHECK(jpeg_component_info, coefs);
  TR_CHECK(d_derived_tbl, pub);
  for (int i = 1; i < 2048; i++) nbits_table[i] = nbits_table[i / 2] + 1;
  picture *pictures = HEAP_CALLOC(picture, PICTURES);
  for (int p = 0; p < PICTURES; p++) {
    pictures[p].rgb = alloc_sarray(WIDTH * 3, HEIGHT);
    for (int y = 0; y < HEIGHT; y++)
      for (int x = 0; x < WIDTH * 3; x++)
        pictures[p].rgb[y][x] = (JSAMPLE) ((x * x * (p + 1) / 97 + y * (x % 3 + 1) * 2) / 3 + tr_rand() % (4 + 6 * p));
  }
  codecs[0] = create_codec(WIDTH, HEIGHT, 40);
  codecs[1] = create_codec(WIDTH, HEIGHT, 90);
  for (int ci = 0; ci < MAX_COMPS; ci++) full[ci] = alloc_sarray(WIDTH, HEIGHT);
  rgb = alloc_sarray(WIDTH * 3, HEIGHT);
  png_writer *png = HEAP_CALLOC(png_writer, 1);
  png->rows = alloc_sarray(WIDTH * 3, HEIGHT);
  png->filter_types = HEAP_CALLOC(unsigned char, HEIGHT);
  for (int f = 0; f < 5; f++) png->try_row[f] = HEAP_CALLOC(unsigned char, WIDTH * 3);
  for (unsigned round = 0; tr_more(); round++) {
    j_ptr cinfo = codecs[round & 1];
    picture *pic = &pictures[round % PICTURES];
    compress_image(cinfo, pic, full);
    decompress_image(cinfo, full, rgb);
    pic->error = 0;
    for (int y = 0; y < HEIGHT; y += 4)
      for (int x = 0; x < WIDTH * 3; x++) pic->error += (unsigned long) abs(rgb[y][x] - pic->rgb[y][x]);
    if (round % 4 == 0) sum += png_filter_rows(png, rgb, WIDTH * 3, HEIGHT);
  }
  if (getenv("VERBOSE"))
    for (int p = 0; p < PICTURES; p++)
      printf("error %.2f, %lu bytes, %lu blocks, filters %lu %lu %lu\n", pictures[p].error / (16.0 * WIDTH * 3), total_bytes, total_blocks, png->chosen[1], png->chosen[2], png->chosen[4]);
  tr_sink = sum + total_bytes;
  return 0;
}
