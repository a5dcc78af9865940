/******************************************************************************
 *
 * Purpose:  Elevations on a raster: bands of several data types behind a cache
 *           of blocks, hillshade and slope by function pointers, depressions
 *           filled, drainage, contours, warping, splines, a quad tree of points.
 *
 ******************************************************************************/
#include "../heap.h"
#include <emmintrin.h>

typedef unsigned char GByte;
typedef short         GInt16;
typedef int           GInt32;
typedef unsigned int  GUInt32;
typedef long long     GIntBig;

typedef enum { CE_None = 0, CE_Failure = 3 } CPLErr;
typedef enum { GDT_Byte, GDT_Int16, GDT_Int32, GDT_Float32, GDT_Float64, GDT_TypeCount } GDALDataType;
typedef enum { GRA_NearestNeighbour, GRA_Bilinear, GRA_Cubic, GRA_Count } GDALResampleAlg;
typedef enum { GF_Read, GF_Write } GDALRWFlag;

#define BLOCK_SIZE      32
#define MAX_CACHED      220
#define HASH_SIZE       256
#define MIN(a, b)       ((a) < (b) ? (a) : (b))
#define MAX(a, b)       ((a) > (b) ? (a) : (b))
#define CPL_UNUSED      __attribute__((unused))
#define CPLAbs(x)       ((x) < 0 ? -(x) : (x))

/* No mathematical library is needed. */
static inline double CPLSqrt(double dfX)
{
    const __m128d v = _mm_set_sd(dfX);
    return _mm_cvtsd_f64(_mm_sqrt_sd(v, v));
}

static double CPLSin(double dfX)
{
    const int    nTurns = (int)(dfX / 6.283185307179586 + 0.5);
    const double x = dfX - nTurns * 6.283185307179586, x2 = x * x;
    return x * (1 - x2 / 6 * (1 - x2 / 20 * (1 - x2 / 42 * (1 - x2 / 72))));
}

/* -------------------------------------------------------------------- */
/*      Bands, and blocks of them.                                      */
/* -------------------------------------------------------------------- */
typedef struct GDALRasterBandS GDALRasterBand;
typedef struct GDALDatasetS    GDALDataset;

typedef struct GDALRasterBlockS
{
    struct GDALRasterBlockS *poNext, *poPrevious; /* by use */
    struct GDALRasterBlockS *poHashNext;
    GDALRasterBand *poBand;
    int             nXOff, nYOff;
    int             nLockCount;
    unsigned        bDirty : 1;
    unsigned        eType : 4;
    unsigned        nTouched : 20;
    void           *pData;
} GDALRasterBlock;

struct GDALRasterBandS
{
    GDALDataset  *poDS;
    int           nBand, nRasterXSize, nRasterYSize;
    int           nBlocksPerRow, nBlocksPerColumn;
    GDALDataType  eDataType;
    void        **papStored; /* blocks that are not in the cache */
    double        dfNoData, dfScale, dfOffset;
    struct { double dfMin, dfMax, dfMean, dfStdDev; GIntBig nCount; } sStats;
    GDALRasterBlock *apoHash[HASH_SIZE];
};

struct GDALDatasetS
{
    char            szDescription[32];
    int             nBands;
    double          adfGeoTransform[6];
    GDALRasterBand *papoBands[8];
};

static struct GDALCache
{
    GDALRasterBlock *poNewest, *poOldest, *poFree;
    int              nCached;
    GIntBig          nHits, nMisses, nFlushed;
} sCache;

static const int anTypeSize[GDT_TypeCount] = {1, 2, 4, 4, 8};

static void *GDALAllocData(GDALDataType eType, size_t nCount)
{
    switch (eType)
    {
        case GDT_Byte: return HEAP_CALLOC(unsigned char, nCount);
        case GDT_Int16: return HEAP_CALLOC(short, nCount);
        case GDT_Int32: return HEAP_CALLOC(int, nCount);
        case GDT_Float32: return HEAP_CALLOC(float, nCount);
        default: return HEAP_CALLOC(double, nCount);
    }
}

/* -------------------------------------------------------------------- */
/*      Words of any type to any other: one function for each pair.     */
/* -------------------------------------------------------------------- */
typedef void (*GDALCopyFunc)(const void *pSrc, int nSrcStride, void *pDst, int nDstStride, int nCount);

#define COPY(S, D, Conv)                                                                           \
    static void GDALCopy_##S##_##D(const void *pSrc, int nSrcStride, void *pDst, int nDstStride,  \
                                   int nCount)                                                     \
    {                                                                                              \
        const S *pS = (const S *)pSrc;                                                             \
        D       *pD = (D *)pDst;                                                                   \
        for (int i = 0; i < nCount; i++, pS += nSrcStride, pD += nDstStride) *pD = Conv(*pS);      \
    }
#define AS_IS(x)  (x)
#define ROUND(x)  ((x) < 0 ? (int)((x) - 0.5f) : (int)((x) + 0.5f))
#define BYTE(x)   (GByte)((x) < 0 ? 0 : (x) > 255 ? 255 : (x))
#define COPY_TO_ALL(S)          \
    COPY(S, GByte, BYTE)        \
    COPY(S, GInt16, (GInt16)ROUND) \
    COPY(S, GInt32, (GInt32)ROUND) \
    COPY(S, float, (float))     \
    COPY(S, double, AS_IS)
COPY_TO_ALL(GByte)
COPY_TO_ALL(GInt16)
COPY_TO_ALL(GInt32)
COPY_TO_ALL(float)
COPY_TO_ALL(double)
#define ROW(S) {GDALCopy_##S##_GByte, GDALCopy_##S##_GInt16, GDALCopy_##S##_GInt32, GDALCopy_##S##_float, GDALCopy_##S##_double}
static const GDALCopyFunc apfnCopy[GDT_TypeCount][GDT_TypeCount] = {ROW(GByte), ROW(GInt16), ROW(GInt32), ROW(float), ROW(double)};

/************************************************************************/
/*                          GDALGetLockedBlock()                        */
/************************************************************************/
static void GDALBlockTouch(GDALRasterBlock *poBlock)
{
    poBlock->nTouched++;
    if (sCache.poNewest == poBlock) return;
    if (poBlock->poPrevious) poBlock->poPrevious->poNext = poBlock->poNext;
    if (poBlock->poNext) poBlock->poNext->poPrevious = poBlock->poPrevious;
    if (sCache.poOldest == poBlock) sCache.poOldest = poBlock->poPrevious;
    poBlock->poPrevious = NULL;
    poBlock->poNext = sCache.poNewest;
    if (sCache.poNewest) sCache.poNewest->poPrevious = poBlock;
    sCache.poNewest = poBlock;
    if (!sCache.poOldest) sCache.poOldest = poBlock;
}

static inline int GDALBlockHash(int nXOff, int nYOff) { return (nXOff * 31 + nYOff * 7) & (HASH_SIZE - 1); }

static NOINLINE void GDALFlushOldest(void)
{
    GDALRasterBlock *poBlock = sCache.poOldest;
    while (poBlock && poBlock->nLockCount) poBlock = poBlock->poPrevious;
    if (!poBlock) return;
    GDALRasterBand   *poBand = poBlock->poBand;
    GDALRasterBlock **ppoLink = &poBand->apoHash[GDALBlockHash(poBlock->nXOff, poBlock->nYOff)];
    while (*ppoLink != poBlock) ppoLink = &(*ppoLink)->poHashNext;
    *ppoLink = poBlock->poHashNext;
    if (poBlock->poPrevious) poBlock->poPrevious->poNext = poBlock->poNext;
    else sCache.poNewest = poBlock->poNext;
    if (poBlock->poNext) poBlock->poNext->poPrevious = poBlock->poPrevious;
    else sCache.poOldest = poBlock->poPrevious;
    /* "Writes" it: what was stored before is exchanged for it. */
    void **ppStored = &poBand->papStored[poBlock->nYOff * poBand->nBlocksPerRow + poBlock->nXOff];
    if (*ppStored == NULL) *ppStored = GDALAllocData(poBand->eDataType, BLOCK_SIZE * BLOCK_SIZE);
    if (poBlock->bDirty)
    {
        apfnCopy[poBlock->eType][poBand->eDataType](poBlock->pData, 1, *ppStored, 1, BLOCK_SIZE * BLOCK_SIZE);
        sCache.nFlushed++;
    }
    HEAP_FREE(poBlock->pData);
    HEAP_FREE(poBlock);
    sCache.nCached--;
}

static NOINLINE GDALRasterBlock *GDALGetLockedBlock(GDALRasterBand *poBand, int nXOff, int nYOff)
{
    const int        iHash = GDALBlockHash(nXOff, nYOff);
    GDALRasterBlock *poBlock = poBand->apoHash[iHash];
    while (poBlock && (poBlock->nXOff != nXOff || poBlock->nYOff != nYOff)) poBlock = poBlock->poHashNext;
    if (poBlock) sCache.nHits++;
    else
    {
        sCache.nMisses++;
        if (sCache.nCached >= MAX_CACHED) GDALFlushOldest();
        poBlock = HEAP_CALLOC(GDALRasterBlock, 1);
        poBlock->poBand = poBand;
        poBlock->nXOff = nXOff;
        poBlock->nYOff = nYOff;
        poBlock->eType = poBand->eDataType;
        poBlock->pData = GDALAllocData(poBand->eDataType, BLOCK_SIZE * BLOCK_SIZE);
        const void *pStored = poBand->papStored[nYOff * poBand->nBlocksPerRow + nXOff];
        if (pStored) apfnCopy[poBand->eDataType][poBand->eDataType](pStored, 1, poBlock->pData, 1, BLOCK_SIZE * BLOCK_SIZE);
        poBlock->poHashNext = poBand->apoHash[iHash];
        poBand->apoHash[iHash] = poBlock;
        sCache.nCached++;
    }
    poBlock->nLockCount++;
    GDALBlockTouch(poBlock);
    return poBlock;
}

/************************************************************************/
/*                            GDALRasterIO()                            */
/************************************************************************/
static NOINLINE CPLErr GDALRasterIO(GDALRasterBand *poBand, GDALRWFlag eRWFlag, int nXOff, int nYOff, int nXSize, int nYSize, void *pData, GDALDataType eBufType)
{
    if (nXOff < 0 || nYOff < 0 || nXOff + nXSize > poBand->nRasterXSize || nYOff + nYSize > poBand->nRasterYSize) return CE_Failure;
    const int nWord = anTypeSize[poBand->eDataType], nBufWord = anTypeSize[eBufType];
    for (int iBY = nYOff / BLOCK_SIZE; iBY <= (nYOff + nYSize - 1) / BLOCK_SIZE; iBY++)
        for (int iBX = nXOff / BLOCK_SIZE; iBX <= (nXOff + nXSize - 1) / BLOCK_SIZE; iBX++)
        {
            GDALRasterBlock *poBlock = GDALGetLockedBlock(poBand, iBX, iBY);
            const int        nX0 = MAX(nXOff, iBX * BLOCK_SIZE), nX1 = MIN(nXOff + nXSize, (iBX + 1) * BLOCK_SIZE);
            const int        nY0 = MAX(nYOff, iBY * BLOCK_SIZE), nY1 = MIN(nYOff + nYSize, (iBY + 1) * BLOCK_SIZE);
            for (int iY = nY0; iY < nY1; iY++)
            {
                GByte *pabyBlock = (GByte *)poBlock->pData + ((iY - iBY * BLOCK_SIZE) * BLOCK_SIZE + nX0 - iBX * BLOCK_SIZE) * nWord;
                GByte *pabyBuf = (GByte *)pData + ((iY - nYOff) * nXSize + nX0 - nXOff) * nBufWord;
                if (eRWFlag == GF_Read) apfnCopy[poBand->eDataType][eBufType](pabyBlock, 1, pabyBuf, 1, nX1 - nX0);
                else apfnCopy[eBufType][poBand->eDataType](pabyBuf, 1, pabyBlock, 1, nX1 - nX0);
            }
            if (eRWFlag == GF_Write) poBlock->bDirty = 1;
            poBlock->nLockCount--;
        }
    return CE_None;
}

static GDALRasterBand *GDALAddBand(GDALDataset *poDS, int nXSize, int nYSize, GDALDataType eType)
{
    GDALRasterBand *poBand = HEAP_CALLOC(GDALRasterBand, 1);
    poBand->poDS = poDS;
    poBand->nRasterXSize = nXSize;
    poBand->nRasterYSize = nYSize;
    poBand->nBlocksPerRow = (nXSize + BLOCK_SIZE - 1) / BLOCK_SIZE;
    poBand->nBlocksPerColumn = (nYSize + BLOCK_SIZE - 1) / BLOCK_SIZE;
    poBand->eDataType = eType;
    poBand->dfScale = 1;
    poBand->dfNoData = -9999;
    poBand->papStored = HEAP_CALLOC(void *, (size_t)poBand->nBlocksPerRow * poBand->nBlocksPerColumn);
    poDS->papoBands[poDS->nBands++] = poBand;
    poBand->nBand = poDS->nBands;
    return poBand;
}

/************************************************************************/
/*              Windows of three by three: slope, shade, ...            */
/************************************************************************/
typedef float (*GDAL3x3Alg)(const float *pafWin, float fDstNoData, void *pData);

typedef struct { double nsres, ewres, sin_altRadians, cos_alt_mul_z, azRadians, square_z; } GDALHillshadeAlgData;
typedef struct { double nsres, ewres, scale; int slopeFormat; } GDALSlopeAlgData;
typedef struct { GUInt32 nCells; float fMax; double dfSum; } GDALTRIAlgData;

static float GDALHillshadeAlg(const float *win, float fDstNoData CPL_UNUSED, void *pData)
{
    const GDALHillshadeAlgData *psData = (const GDALHillshadeAlgData *)pData;
    const double x = ((win[0] + win[3] + win[3] + win[6]) - (win[2] + win[5] + win[5] + win[8])) / psData->ewres;
    const double y = ((win[6] + win[7] + win[7] + win[8]) - (win[0] + win[1] + win[1] + win[2])) / psData->nsres;
    const double xx_plus_yy = x * x + y * y;
    const double cang = (psData->sin_altRadians - (y * psData->cos_alt_mul_z - x * psData->azRadians)) / CPLSqrt(1 + psData->square_z * xx_plus_yy);
    return cang <= 0.0 ? 1.0f : (float)(1.0 + 254.0 * cang);
}

static float GDALSlopeAlg(const float *win, float fDstNoData CPL_UNUSED, void *pData)
{
    const GDALSlopeAlgData *psData = (const GDALSlopeAlgData *)pData;
    const double dx = ((win[0] + win[3] + win[3] + win[6]) - (win[2] + win[5] + win[5] + win[8])) / psData->ewres;
    const double dy = ((win[6] + win[7] + win[7] + win[8]) - (win[0] + win[1] + win[1] + win[2])) / psData->nsres;
    const double key = dx * dx + dy * dy;
    return (float)(psData->slopeFormat ? 100 * CPLSqrt(key) / (8 * psData->scale) : key / psData->scale);
}

static float GDALTRIAlg(const float *win, float fDstNoData, void *pData)
{
    GDALTRIAlgData *psData = (GDALTRIAlgData *)pData;
    float fSum = 0;
    if (win[4] == fDstNoData) return fDstNoData;
    for (int i = 0; i < 9; i++) fSum += CPLAbs(win[i] - win[4]);
    psData->nCells++;
    psData->dfSum += fSum;
    if (fSum > psData->fMax) psData->fMax = fSum;
    return fSum / 8;
}

static NOINLINE CPLErr GDALGeneric3x3Processing(GDALRasterBand *poSrc, GDALRasterBand *poDst, GDAL3x3Alg pfnAlg, void *pData)
{
    const int nXSize = poSrc->nRasterXSize, nYSize = poSrc->nRasterYSize;
    float *pafThreeLines = HEAP_CALLOC(float, 3 * (size_t)nXSize), *pafOutput = HEAP_CALLOC(float, (size_t)nXSize);
    for (int i = 0; i < 2; i++) GDALRasterIO(poSrc, GF_Read, 0, i, nXSize, 1, pafThreeLines + i * nXSize, GDT_Float32);
    for (int iLine = 1; iLine < nYSize - 1; iLine++)
    {
        const int nLine1 = (iLine - 1) % 3 * nXSize, nLine2 = iLine % 3 * nXSize, nLine3 = (iLine + 1) % 3 * nXSize;
        GDALRasterIO(poSrc, GF_Read, 0, iLine + 1, nXSize, 1, pafThreeLines + nLine3, GDT_Float32);
        for (int j = 1; j < nXSize - 1; j++)
        {
            float afWin[9];
            for (int k = 0; k < 3; k++)
            {
                afWin[k] = pafThreeLines[nLine1 + j - 1 + k];
                afWin[3 + k] = pafThreeLines[nLine2 + j - 1 + k];
                afWin[6 + k] = pafThreeLines[nLine3 + j - 1 + k];
            }
            pafOutput[j] = pfnAlg(afWin, -9999.0f, pData);
        }
        GDALRasterIO(poDst, GF_Write, 0, iLine, nXSize, 1, pafOutput, GDT_Float32);
    }
    HEAP_FREE(pafThreeLines);
    HEAP_FREE(pafOutput);
    return CE_None;
}

/************************************************************************/
/*            Depressions filled from the edges, and drainage           */
/************************************************************************/
typedef struct { double dfElev; GInt32 nCell; GUInt32 nOrder; } FloodCell;
typedef struct { FloodCell *pasCells; int nCount, nAlloc; GUInt32 nOrder; } FloodQueue;

static const int anDX[8] = {1, 1, 0, -1, -1, -1, 0, 1}, anDY[8] = {0, 1, 1, 1, 0, -1, -1, -1};

static NOINLINE void FloodPush(FloodQueue *psQ, double dfElev, GInt32 nCell)
{
    if (psQ->nCount == psQ->nAlloc)
    {
        psQ->nAlloc = psQ->nAlloc ? 2 * psQ->nAlloc : 1024;
        psQ->pasCells = HEAP_REALLOC(psQ->pasCells, FloodCell, (size_t)psQ->nAlloc);
    }
    int i = psQ->nCount++;
    while (i > 0 && psQ->pasCells[(i - 1) / 2].dfElev > dfElev)
    {
        psQ->pasCells[i] = psQ->pasCells[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    psQ->pasCells[i].dfElev = dfElev;
    psQ->pasCells[i].nCell = nCell;
    psQ->pasCells[i].nOrder = psQ->nOrder++;
}

static NOINLINE FloodCell FloodPop(FloodQueue *psQ)
{
    const FloodCell sTop = psQ->pasCells[0], sLast = psQ->pasCells[--psQ->nCount];
    int i = 0;
    for (;;)
    {
        int iChild = 2 * i + 1;
        if (iChild >= psQ->nCount) break;
        if (iChild + 1 < psQ->nCount && psQ->pasCells[iChild + 1].dfElev < psQ->pasCells[iChild].dfElev) iChild++;
        if (sLast.dfElev <= psQ->pasCells[iChild].dfElev) break;
        psQ->pasCells[i] = psQ->pasCells[iChild];
        i = iChild;
    }
    psQ->pasCells[i] = sLast;
    return sTop;
}

static NOINLINE int FillAndDrain(float *pafElev, GByte *pabyDir, GInt32 *panAccum, int nXSize, int nYSize, FloodQueue *psQ)
{
    const int nCells = nXSize * nYSize;
    int       nFilled = 0, nOrdered = 0;
    GInt32   *panOrder = HEAP_CALLOC(int, (size_t)nCells);
    memset(pabyDir, 255, (size_t)nCells);
    for (int i = 0; i < nCells; i++)
    {
        panAccum[i] = 1;
        const int iX = i % nXSize, iY = i / nXSize;
        if (iX == 0 || iY == 0 || iX == nXSize - 1 || iY == nYSize - 1)
        {
            pabyDir[i] = 8;
            FloodPush(psQ, pafElev[i], i);
        }
    }
    while (psQ->nCount)
    {
        const FloodCell sCell = FloodPop(psQ);
        const int       iX = sCell.nCell % nXSize, iY = sCell.nCell / nXSize;
        panOrder[nOrdered++] = sCell.nCell;
        for (int k = 0; k < 8; k++)
        {
            const int nX = iX + anDX[k], nY = iY + anDY[k], iTo = nY * nXSize + nX;
            if (nX < 0 || nY < 0 || nX >= nXSize || nY >= nYSize || pabyDir[iTo] != 255) continue;
            pabyDir[iTo] = (GByte)((k + 4) & 7);
            if (pafElev[iTo] < sCell.dfElev)
            {
                pafElev[iTo] = (float)sCell.dfElev;
                nFilled++;
            }
            FloodPush(psQ, pafElev[iTo], iTo);
        }
    }
    for (int i = nOrdered - 1; i >= 0; i--)
    {
        const int iCell = panOrder[i], nDir = pabyDir[iCell];
        if (nDir < 8) panAccum[iCell + anDY[nDir] * nXSize + anDX[nDir]] += panAccum[iCell];
    }
    HEAP_FREE(panOrder);
    return nFilled;
}

/************************************************************************/
/*                               Contours                               */
/************************************************************************/
typedef struct { double x, y; } OGRRawPoint;
typedef struct GDALContourItemS
{
    struct GDALContourItemS *psNext;
    double       dfLevel;
    int          bRecentlyAccessed, nPoints, nMaxPoints;
    OGRRawPoint *pasPoints;
} GDALContourItem;
typedef struct { double dfLevel; int nEntryCount; GDALContourItem *psFirst; } GDALContourLevel;
typedef struct { int nLevelCount, nDone; double dfInterval, dfLength; GDALContourLevel asLevels[48]; } GDALContourGenerator;

static NOINLINE void ContourAddSegment(GDALContourGenerator *psCG, GDALContourLevel *psLevel, OGRRawPoint sA, OGRRawPoint sB)
{
    GDALContourItem *psItem;
    for (psItem = psLevel->psFirst; psItem; psItem = psItem->psNext)
    {
        const OGRRawPoint *psEnd = &psItem->pasPoints[psItem->nPoints - 1];
        if (CPLAbs(psEnd->x - sA.x) < 1e-6 && CPLAbs(psEnd->y - sA.y) < 1e-6) break;
        if (CPLAbs(psEnd->x - sB.x) < 1e-6 && CPLAbs(psEnd->y - sB.y) < 1e-6)
        {
            sB = sA;
            break;
        }
    }
    if (!psItem)
    {
        psItem = HEAP_CALLOC(GDALContourItem, 1);
        psItem->dfLevel = psLevel->dfLevel;
        psItem->nMaxPoints = 8;
        psItem->pasPoints = HEAP_CALLOC(OGRRawPoint, 8);
        psItem->pasPoints[psItem->nPoints++] = sA;
        psItem->psNext = psLevel->psFirst;
        psLevel->psFirst = psItem;
        psLevel->nEntryCount++;
    }
    if (psItem->nPoints == psItem->nMaxPoints)
    {
        psItem->nMaxPoints *= 2;
        psItem->pasPoints = HEAP_REALLOC(psItem->pasPoints, OGRRawPoint, (size_t)psItem->nMaxPoints);
    }
    psItem->pasPoints[psItem->nPoints++] = sB;
    psItem->bRecentlyAccessed = 1;
    psCG->dfLength += CPLAbs(sB.x - sA.x) + CPLAbs(sB.y - sA.y);
}

static NOINLINE void ContourFeedLine(GDALContourGenerator *psCG, const float *pafLast, const float *pafThis, int nXSize, int iLine)
{
    for (int i = 0; i + 1 < nXSize; i++)
    {
        const float afZ[4] = {pafLast[i], pafLast[i + 1], pafThis[i + 1], pafThis[i]};
        const float fMin = MIN(MIN(afZ[0], afZ[1]), MIN(afZ[2], afZ[3])), fMax = MAX(MAX(afZ[0], afZ[1]), MAX(afZ[2], afZ[3]));
        int         iLevel = MAX(0, (int)(fMin / psCG->dfInterval));
        for (; iLevel < psCG->nLevelCount && psCG->asLevels[iLevel].dfLevel <= fMax; iLevel++)
        {
            GDALContourLevel *psLevel = &psCG->asLevels[iLevel];
            OGRRawPoint       asCross[4];
            int               nCross = 0;
            if (psLevel->dfLevel < fMin) continue;
            for (int k = 0; k < 4; k++)
            {
                const double dfA = afZ[k], dfB = afZ[(k + 1) & 3];
                if ((dfA < psLevel->dfLevel) == (dfB < psLevel->dfLevel)) continue;
                const double dfT = (psLevel->dfLevel - dfA) / (dfB - dfA);
                asCross[nCross].x = i + (k == 0 ? dfT : k == 1 ? 1 : k == 2 ? 1 - dfT : 0);
                asCross[nCross++].y = iLine + (k == 0 ? 0 : k == 1 ? dfT : k == 2 ? 1 : 1 - dfT);
            }
            for (int k = 0; k + 1 < nCross; k += 2) ContourAddSegment(psCG, psLevel, asCross[k], asCross[k + 1]);
        }
    }
    for (int iLevel = 0; iLevel < psCG->nLevelCount; iLevel++) /* what no longer grows is done */
        for (GDALContourItem **ppsLink = &psCG->asLevels[iLevel].psFirst, *psItem; (psItem = *ppsLink) != NULL;)
        {
            if (psItem->bRecentlyAccessed)
            {
                psItem->bRecentlyAccessed = 0;
                ppsLink = &psItem->psNext;
                continue;
            }
            *ppsLink = psItem->psNext;
            psCG->nDone++;
            psCG->asLevels[iLevel].nEntryCount--;
            HEAP_FREE(psItem->pasPoints);
            HEAP_FREE(psItem);
        }
}

/************************************************************************/
/*                               Warping                                */
/************************************************************************/
typedef int (*GDALTransformerFunc)(void *pTransformArg, int nPoints, double *x, double *y);
typedef struct { double adfForward[6], adfReverse[6]; } GDALGenImgTransformArg;
typedef struct { GDALTransformerFunc pfnBase; void *pBaseArg; double dfMaxError; int nSkipped, nExact; } ApproxTransformInfo;
typedef struct
{
    GDALTransformerFunc pfnTransformer;
    void               *pTransformerArg;
    GDALResampleAlg     eResample;
    int                 nSrcXSize, nSrcYSize, nDstXSize, nDstYSize;
    const float        *pafSrc;
    GByte              *pabyDst;
    GUInt32            *panValidity;
    float               fScale;
} GDALWarpKernel;
typedef int (*GWKSampler)(const GDALWarpKernel *poWK, double dfX, double dfY, float *pfOut);

static int GDALGenImgTransform(void *pArg, int nPoints, double *x, double *y)
{
    const GDALGenImgTransformArg *psArg = (const GDALGenImgTransformArg *)pArg;
    for (int i = 0; i < nPoints; i++)
    {
        const double *padf = psArg->adfReverse;
        const double  dfX = padf[0] + x[i] * padf[1] + y[i] * padf[2] + 3.0 * CPLSin(y[i] * 0.02);
        const double  dfY = padf[3] + x[i] * padf[4] + y[i] * padf[5];
        x[i] = dfX;
        y[i] = dfY;
    }
    return nPoints;
}

static int GDALApproxTransform(void *pArg, int nPoints, double *x, double *y)
{
    ApproxTransformInfo *psATInfo = (ApproxTransformInfo *)pArg;
    double adfX[3] = {x[0], x[nPoints / 2], x[nPoints - 1]}, adfY[3] = {y[0], y[nPoints / 2], y[nPoints - 1]};
    psATInfo->pfnBase(psATInfo->pBaseArg, 3, adfX, adfY);
    const double dfMidX = (adfX[0] + adfX[2]) / 2, dfMidY = (adfY[0] + adfY[2]) / 2;
    if (CPLAbs(dfMidX - adfX[1]) + CPLAbs(dfMidY - adfY[1]) > psATInfo->dfMaxError)
    {
        psATInfo->nExact += nPoints;
        return psATInfo->pfnBase(psATInfo->pBaseArg, nPoints, x, y);
    }
    for (int i = 0; i < nPoints; i++)
    {
        const double dfT = (double)i / (nPoints - 1);
        x[i] = adfX[0] + (adfX[2] - adfX[0]) * dfT;
        y[i] = adfY[0] + (adfY[2] - adfY[0]) * dfT;
    }
    psATInfo->nSkipped += nPoints;
    return nPoints;
}

static int GWKNearest(const GDALWarpKernel *poWK, double dfX, double dfY, float *pfOut)
{
    *pfOut = poWK->pafSrc[(int)dfY * poWK->nSrcXSize + (int)dfX];
    return 1;
}

static int GWKBilinear(const GDALWarpKernel *poWK, double dfX, double dfY, float *pfOut)
{
    const int    iX = (int)dfX, iY = (int)dfY;
    const float  fRX = (float)(dfX - iX), fRY = (float)(dfY - iY);
    if (iX + 1 >= poWK->nSrcXSize || iY + 1 >= poWK->nSrcYSize) return 0;
    const float *paf = poWK->pafSrc + iY * poWK->nSrcXSize + iX;
    *pfOut = (paf[0] * (1 - fRX) + paf[1] * fRX) * (1 - fRY) + (paf[poWK->nSrcXSize] * (1 - fRX) + paf[poWK->nSrcXSize + 1] * fRX) * fRY;
    return 1;
}

static inline float CubicConvolution(float d1, float d2, float d3, float f0, float f1, float f2, float f3)
{
    return f1 + 0.5f * ((f2 - f0) * d1 + (2.0f * f0 - 5.0f * f1 + 4.0f * f2 - f3) * d2 + (3.0f * (f1 - f2) + f3 - f0) * d3);
}

static int GWKCubic(const GDALWarpKernel *poWK, double dfX, double dfY, float *pfOut)
{
    const int   iX = (int)dfX, iY = (int)dfY, n = poWK->nSrcXSize;
    const float fX = (float)(dfX - iX), fY = (float)(dfY - iY);
    float       afRow[4];
    if (iX < 1 || iY < 1 || iX + 2 >= n || iY + 2 >= poWK->nSrcYSize) return GWKBilinear(poWK, dfX, dfY, pfOut);
    for (int k = 0; k < 4; k++)
    {
        const float *paf = poWK->pafSrc + (iY - 1 + k) * n + iX - 1;
        afRow[k] = CubicConvolution(fX, fX * fX, fX * fX * fX, paf[0], paf[1], paf[2], paf[3]);
    }
    *pfOut = CubicConvolution(fY, fY * fY, fY * fY * fY, afRow[0], afRow[1], afRow[2], afRow[3]);
    return 1;
}

static const GWKSampler apfnSamplers[GRA_Count] = {GWKNearest, GWKBilinear, GWKCubic};

static NOINLINE int GWKGeneralCase(GDALWarpKernel *poWK)
{
    double *padfX = HEAP_CALLOC(double, (size_t)poWK->nDstXSize), *padfY = HEAP_CALLOC(double, (size_t)poWK->nDstXSize);
    int     nWarped = 0;
    for (int iDstY = 0; iDstY < poWK->nDstYSize; iDstY++)
    {
        for (int iDstX = 0; iDstX < poWK->nDstXSize; iDstX++)
        {
            padfX[iDstX] = iDstX + 0.5;
            padfY[iDstX] = iDstY + 0.5;
        }
        poWK->pfnTransformer(poWK->pTransformerArg, poWK->nDstXSize, padfX, padfY);
        for (int iDstX = 0; iDstX < poWK->nDstXSize; iDstX++)
        {
            float     fValue;
            const int iDst = iDstY * poWK->nDstXSize + iDstX;
            if (padfX[iDstX] < 0 || padfY[iDstX] < 0 || padfX[iDstX] >= poWK->nSrcXSize || padfY[iDstX] >= poWK->nSrcYSize || !apfnSamplers[poWK->eResample](poWK, padfX[iDstX], padfY[iDstX], &fValue))
            {
                poWK->panValidity[iDst >> 5] &= ~(1u << (iDst & 31));
                continue;
            }
            poWK->panValidity[iDst >> 5] |= 1u << (iDst & 31);
            poWK->pabyDst[iDst] = BYTE(fValue * poWK->fScale);
            nWarped++;
        }
    }
    HEAP_FREE(padfX);
    HEAP_FREE(padfY);
    return nWarped;
}

/************************************************************************/
/*                 A quad tree of points, and gridding                  */
/************************************************************************/
typedef struct { double minx, miny, maxx, maxy; } CPLRectObj;
typedef struct { double x, y; float fZ, fWeight; } GDALGridPoint;
typedef struct _QuadTreeNode QuadTreeNode;
struct _QuadTreeNode
{
    CPLRectObj     rect;
    int            nFeatures, nNumSubNodes;
    void         **pahFeatures;
    QuadTreeNode  *apSubNode[4];
};
typedef void (*CPLQuadTreeGetBoundsFunc)(const void *hFeature, CPLRectObj *pBounds);
typedef int (*CPLQuadTreeForeachFunc)(void *pElt, void *pUserData);
typedef struct { QuadTreeNode *psRoot; CPLQuadTreeGetBoundsFunc pfnGetBounds; int nFeatures, nMaxDepth, nBucketCapacity; } CPLQuadTree;

static void GridPointBounds(const void *hFeature, CPLRectObj *pBounds)
{
    const GDALGridPoint *psPoint = (const GDALGridPoint *)hFeature;
    pBounds->minx = pBounds->maxx = psPoint->x;
    pBounds->miny = pBounds->maxy = psPoint->y;
}

static QuadTreeNode *QuadTreeNodeCreate(double minx, double miny, double maxx, double maxy)
{
    QuadTreeNode *psNode = HEAP_CALLOC(QuadTreeNode, 1);
    psNode->rect.minx = minx, psNode->rect.miny = miny, psNode->rect.maxx = maxx, psNode->rect.maxy = maxy;
    psNode->pahFeatures = HEAP_CALLOC(void *, 16);
    return psNode;
}

static int QuadTreeSlot(const QuadTreeNode *psNode, const CPLRectObj *psRect)
{
    return (psRect->minx >= (psNode->rect.minx + psNode->rect.maxx) / 2) + 2 * (psRect->miny >= (psNode->rect.miny + psNode->rect.maxy) / 2);
}

static NOINLINE void CPLQuadTreeNodeAdd(const CPLQuadTree *psTree, QuadTreeNode *psNode, void *hFeature, const CPLRectObj *psRect, int nDepth)
{
    if (psNode->nNumSubNodes)
    {
        CPLQuadTreeNodeAdd(psTree, psNode->apSubNode[QuadTreeSlot(psNode, psRect)], hFeature, psRect, nDepth + 1);
        return;
    }
    if (psNode->nFeatures == psTree->nBucketCapacity)
    {
        if (nDepth >= psTree->nMaxDepth) return;
        const double midx = (psNode->rect.minx + psNode->rect.maxx) / 2, midy = (psNode->rect.miny + psNode->rect.maxy) / 2;
        for (int i = 0; i < 4; i++)
            psNode->apSubNode[i] = QuadTreeNodeCreate(i & 1 ? midx : psNode->rect.minx, i & 2 ? midy : psNode->rect.miny, i & 1 ? psNode->rect.maxx : midx, i & 2 ? psNode->rect.maxy : midy);
        psNode->nNumSubNodes = 4;
        for (int i = 0; i < psNode->nFeatures; i++)
        {
            CPLRectObj sRect;
            psTree->pfnGetBounds(psNode->pahFeatures[i], &sRect);
            CPLQuadTreeNodeAdd(psTree, psNode->apSubNode[QuadTreeSlot(psNode, &sRect)], psNode->pahFeatures[i], &sRect, nDepth + 1);
        }
        psNode->nFeatures = 0;
        CPLQuadTreeNodeAdd(psTree, psNode, hFeature, psRect, nDepth);
        return;
    }
    psNode->pahFeatures[psNode->nFeatures++] = hFeature;
}

static NOINLINE int CPLQuadTreeSearch(const CPLQuadTree *psTree, const QuadTreeNode *psNode, const CPLRectObj *psAoi, CPLQuadTreeForeachFunc pfnForeach, void *pUser)
{
    int nFound = 0;
    if (psNode->rect.minx > psAoi->maxx || psNode->rect.maxx < psAoi->minx || psNode->rect.miny > psAoi->maxy || psNode->rect.maxy < psAoi->miny) return 0;
    for (int i = 0; i < psNode->nFeatures; i++)
    {
        CPLRectObj sRect;
        psTree->pfnGetBounds(psNode->pahFeatures[i], &sRect);
        if (sRect.minx >= psAoi->minx && sRect.minx <= psAoi->maxx && sRect.miny >= psAoi->miny && sRect.miny <= psAoi->maxy) nFound += pfnForeach(psNode->pahFeatures[i], pUser);
    }
    for (int i = 0; i < psNode->nNumSubNodes; i++) nFound += CPLQuadTreeSearch(psTree, psNode->apSubNode[i], psAoi, pfnForeach, pUser);
    return nFound;
}

typedef struct { double dfX, dfY, dfNominator, dfDenominator; int nCount; } GridSearch;

static int GridAccumulate(void *pElt, void *pUserData)
{
    GDALGridPoint *psPoint = (GDALGridPoint *)pElt;
    GridSearch    *psSearch = (GridSearch *)pUserData;
    const double   dfRX = psPoint->x - psSearch->dfX, dfRY = psPoint->y - psSearch->dfY, dfW = psPoint->fWeight / (dfRX * dfRX + dfRY * dfRY + 0.01);
    psSearch->dfNominator += dfW * psPoint->fZ;
    psSearch->dfDenominator += dfW;
    psSearch->nCount++;
    return 1;
}

/************************************************************************/
/*                 Natural cubic splines along a profile                */
/************************************************************************/
typedef struct { int nKnots; double *padfX, *padfY, *padfSecond, *padfWork; } CubicSpline;

static NOINLINE void SplineFit(CubicSpline *psSpline)
{
    const int n = psSpline->nKnots;
    double   *x = psSpline->padfX, *y = psSpline->padfY, *y2 = psSpline->padfSecond, *u = psSpline->padfWork;
    y2[0] = u[0] = 0;
    for (int i = 1; i < n - 1; i++)
    {
        const double sig = (x[i] - x[i - 1]) / (x[i + 1] - x[i - 1]), p = sig * y2[i - 1] + 2;
        y2[i] = (sig - 1) / p;
        u[i] = (6 * ((y[i + 1] - y[i]) / (x[i + 1] - x[i]) - (y[i] - y[i - 1]) / (x[i] - x[i - 1])) / (x[i + 1] - x[i - 1]) - sig * u[i - 1]) / p;
    }
    y2[n - 1] = 0;
    for (int k = n - 2; k >= 0; k--) y2[k] = y2[k] * y2[k + 1] + u[k];
}

static NOINLINE double SplineAt(const CubicSpline *psSpline, double dfX)
{
    int lo = 0, hi = psSpline->nKnots - 1;
    while (hi - lo > 1)
    {
        const int k = (hi + lo) >> 1;
        if (psSpline->padfX[k] > dfX) hi = k;
        else lo = k;
    }
    const double h = psSpline->padfX[hi] - psSpline->padfX[lo], a = (psSpline->padfX[hi] - dfX) / h, b = 1 - a;
    return a * psSpline->padfY[lo] + b * psSpline->padfY[hi] + ((a * a * a - a) * psSpline->padfSecond[lo] + (b * b * b - b) * psSpline->padfSecond[hi]) * h * h / 6;
}

static NOINLINE void ComputeStatistics(GDALRasterBand *poBand, GUInt32 *panHistogram)
{
    double dfMean = 0, dfM2 = 0;
    poBand->sStats.dfMin = 1e30, poBand->sStats.dfMax = -1e30, poBand->sStats.nCount = 0;
    for (int iBY = 0; iBY < poBand->nBlocksPerColumn; iBY++)
        for (int iBX = 0; iBX < poBand->nBlocksPerRow; iBX++)
        {
            GDALRasterBlock *poBlock = GDALGetLockedBlock(poBand, iBX, iBY);
            for (int i = 0; i < BLOCK_SIZE * BLOCK_SIZE; i += 3)
            {
                double dfValue;
                switch (poBlock->eType)
                {
                    case GDT_Byte: dfValue = ((const GByte *)poBlock->pData)[i]; break;
                    case GDT_Int16: dfValue = ((const GInt16 *)poBlock->pData)[i]; break;
                    case GDT_Int32: dfValue = ((const GInt32 *)poBlock->pData)[i]; break;
                    case GDT_Float32: dfValue = ((const float *)poBlock->pData)[i]; break;
                    default: dfValue = ((const double *)poBlock->pData)[i]; break;
                }
                if (dfValue == poBand->dfNoData) continue;
                poBand->sStats.nCount++;
                const double dfDelta = dfValue - dfMean;
                dfMean += dfDelta / (double)poBand->sStats.nCount;
                dfM2 += dfDelta * (dfValue - dfMean);
                if (dfValue < poBand->sStats.dfMin) poBand->sStats.dfMin = dfValue;
                if (dfValue > poBand->sStats.dfMax) poBand->sStats.dfMax = dfValue;
                panHistogram[(int)(dfValue < 0 ? 0 : dfValue > 1023 ? 1023 : dfValue)]++;
            }
            poBlock->nLockCount--;
        }
    poBand->sStats.dfMean = dfMean;
    poBand->sStats.dfStdDev = CPLSqrt(dfM2 / (double)MAX(poBand->sStats.nCount, 1));
}

/* Mountains: the middle of each side is moved, more and more finely. */
static void MakeTerrain(float *paf, int n)
{
    for (int nStep = 64; nStep >= 1; nStep /= 2)
        for (int iY = 0; iY < n; iY += nStep)
            for (int iX = 0; iX < n; iX += nStep)
            {
                const int nX = iX & ~(2 * nStep - 1), nY = iY & ~(2 * nStep - 1), nX2 = MIN(nX + 2 * nStep, n - 1), nY2 = MIN(nY + 2 * nStep, n - 1);
                if (nStep < 64 && nX == iX && nY == iY) continue;
                const float fNoise = (float)((tr_rand() >> 20) % 1000) / 1000.0f - 0.5f;
                const float fMean = nStep == 64 ? 300.0f : (paf[nY * n + nX] + paf[nY * n + nX2 / 64 * 64] + paf[nY2 / 64 * 64 * n + nX] + paf[nY2 / 64 * 64 * n + nX2 / 64 * 64]) / 4;
                paf[iY * n + iX] = fMean + fNoise * (float)nStep * 6;
            }
}

int main(int argc, char **argv)
{
    enum { N = 320, POINTS = 2500 };
    tr_init(argc, argv);
    TR_GLOBAL(sCache, "struct GDALCache");
    TR_GLOBAL(apfnCopy, "GDALCopyFunc [][]");
    TR_GLOBAL(anDX, "int []");
    TR_GLOBAL(anDY, "int []");
    TR_GLOBAL(anTypeSize, "int []");
    TR_CHECK(GDALRasterBlock, pData);
    TR_CHECK(GDALRasterBand, apoHash);
    TR_CHECK(GDALContourGenerator, asLevels);
    GDALDataset *poDS = HEAP_CALLOC(GDALDataset, 1);
    strcpy(poDS->szDescription, "dem.tif");
    static const GDALDataType aeTypes[] = {GDT_Int16, GDT_Byte, GDT_Float32, GDT_Int32, GDT_Float64};
    for (int i = 0; i < 5; i++) GDALAddBand(poDS, N, N, aeTypes[i]);
    GDALRasterBand *poDEM = poDS->papoBands[0];
    float   *pafElev = HEAP_CALLOC(float, N * N);
    GByte   *pabyDir = HEAP_CALLOC(unsigned char, N * N), *pabyWarped = HEAP_CALLOC(unsigned char, N * N);
    GInt32  *panAccum = HEAP_CALLOC(int, N * N);
    GUInt32 *panValidity = HEAP_CALLOC(unsigned int, N * N / 32), *panHistogram = HEAP_CALLOC(unsigned int, 1024);
    MakeTerrain(pafElev, N);
    GDALRasterIO(poDEM, GF_Write, 0, 0, N, N, pafElev, GDT_Float32);

    GDALHillshadeAlgData sShade = {80, 80, 0.7071, 0.5, 0.5, 0.015};
    GDALSlopeAlgData     sSlope = {10, 10, 1.1, 1};
    GDALTRIAlgData       sTRI = {0, 0, 0};
    FloodQueue           sQueue = {NULL, 0, 0, 0};
    TR_LOCAL(sShade, "GDALHillshadeAlgData");
    TR_LOCAL(sSlope, "GDALSlopeAlgData");
    TR_LOCAL(sTRI, "GDALTRIAlgData");
    TR_LOCAL(sQueue, "FloodQueue");
    GDALContourGenerator *psCG = HEAP_CALLOC(GDALContourGenerator, 1);
    psCG->nLevelCount = 48;
    psCG->dfInterval = 14;
    for (int i = 0; i < 48; i++) psCG->asLevels[i].dfLevel = 14.0 * i + 0.013;
    CPLQuadTree *psTree = HEAP_CALLOC(CPLQuadTree, 1);
    psTree->psRoot = QuadTreeNodeCreate(0, 0, N, N);
    psTree->pfnGetBounds = GridPointBounds;
    psTree->nMaxDepth = 12;
    psTree->nBucketCapacity = 16;
    GDALGridPoint *pasPoints = HEAP_CALLOC(GDALGridPoint, POINTS);
    for (int i = 0; i < POINTS; i++)
    {
        CPLRectObj sRect;
        pasPoints[i].x = (double)(tr_rand() % (N * 100)) / 100;
        pasPoints[i].y = (double)(tr_rand() % (N * 100)) / 100;
        pasPoints[i].fZ = pafElev[(int)pasPoints[i].y * N + (int)pasPoints[i].x];
        pasPoints[i].fWeight = 1.0f + (float)(i & 3);
        GridPointBounds(&pasPoints[i], &sRect);
        CPLQuadTreeNodeAdd(psTree, psTree->psRoot, &pasPoints[i], &sRect, 0);
        psTree->nFeatures++;
    }
    GDALGenImgTransformArg *psGen = HEAP_CALLOC(GDALGenImgTransformArg, 1);
    ApproxTransformInfo    *psApprox = HEAP_CALLOC(ApproxTransformInfo, 1);
    psApprox->pfnBase = GDALGenImgTransform;
    psApprox->pBaseArg = psGen;
    psApprox->dfMaxError = 0.125;
    CubicSpline *psSpline = HEAP_CALLOC(CubicSpline, 1);
    psSpline->nKnots = N;
    psSpline->padfX = HEAP_CALLOC(double, N);
    psSpline->padfY = HEAP_CALLOC(double, N);
    psSpline->padfSecond = HEAP_CALLOC(double, N);
    psSpline->padfWork = HEAP_CALLOC(double, N);

    double dfSum = 0;
    int    nWarped = 0, nFilled = 0;
    for (int iTurn = 0; tr_more(); iTurn++)
    {
        switch (iTurn % 6)
        {
            case 0:
                GDALGeneric3x3Processing(poDEM, poDS->papoBands[1], GDALHillshadeAlg, &sShade);
                GDALGeneric3x3Processing(poDEM, poDS->papoBands[2], iTurn & 8 ? GDALSlopeAlg : GDALTRIAlg, iTurn & 8 ? (void *)&sSlope : (void *)&sTRI);
                break;
            case 1:
                GDALRasterIO(poDEM, GF_Read, 0, 0, N, N, pafElev, GDT_Float32);
                nFilled += FillAndDrain(pafElev, pabyDir, panAccum, N, N, &sQueue);
                GDALRasterIO(poDS->papoBands[3], GF_Write, 0, 0, N, N, panAccum, GDT_Int32);
                break;
            case 2:
                for (int iLine = 1; iLine < N; iLine++) ContourFeedLine(psCG, pafElev + (iLine - 1) * N, pafElev + iLine * N, N, iLine);
                break;
            case 3:
            {
                const double adfReverse[6] = {20.0 + iTurn % 9, 0.8, 0.1, 10, -0.1, 0.8};
                memcpy(psGen->adfReverse, adfReverse, sizeof adfReverse);
                GDALWarpKernel sWK = {GDALApproxTransform, psApprox, (GDALResampleAlg)(iTurn / 6 % GRA_Count), N, N, N, N, pafElev, pabyWarped, panValidity, 0.4f};
                if (iTurn % 5 == 0) sWK.pfnTransformer = GDALGenImgTransform, sWK.pTransformerArg = psGen;
                nWarped += GWKGeneralCase(&sWK);
                break;
            }
            case 4:
                for (int i = 0; i < 2000; i++)
                {
                    GridSearch sSearch = {(double)(tr_rand() % N), (double)(tr_rand() % N), 0, 0, 0};
                    const CPLRectObj sAoi = {sSearch.dfX - 12, sSearch.dfY - 12, sSearch.dfX + 12, sSearch.dfY + 12};
                    CPLQuadTreeSearch(psTree, psTree->psRoot, &sAoi, GridAccumulate, &sSearch);
                    if (sSearch.nCount) dfSum += sSearch.dfNominator / sSearch.dfDenominator;
                }
                break;
            default:
                for (int iLine = iTurn % 7; iLine < N; iLine += 8)
                {
                    for (int i = 0; i < N; i++)
                    {
                        psSpline->padfX[i] = i + 0.25 * (i & 1);
                        psSpline->padfY[i] = pafElev[iLine * N + i];
                    }
                    SplineFit(psSpline);
                    for (int i = 0; i < 400; i++) dfSum += SplineAt(psSpline, 0.79 * i);
                }
                for (int i = 0; i < 4; i++) ComputeStatistics(poDS->papoBands[i], panHistogram);
                dfSum += poDEM->sStats.dfStdDev;
        }
    }
    if (getenv("SHOW"))
        fprintf(stderr, "sum %g warped %d (%d exact) filled %d contours %d length %g cache hits %lld misses %lld flushed %lld; mean %g sd %g\n", dfSum, nWarped, psApprox->nExact, nFilled, psCG->nDone, psCG->dfLength, sCache.nHits, sCache.nMisses, sCache.nFlushed, poDEM->sStats.dfMean, poDEM->sStats.dfStdDev);
    tr_sink = (unsigned long)dfSum + (unsigned long)nWarped;
    return 0;
}
