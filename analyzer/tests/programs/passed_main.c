/* Calls a subroutine of Fortran's. */
#include "truth.h"

void scale_all_(int *n, double *alpha, double *a, int *lda, double *b, double *c, double *x, double *y);

int main(void) {
    int n = 2;
    double alpha = 3, a[4] = {1, 2}, b[2], c[2], x[2] = {4, 5}, y[2] = {6, 7};
    scale_all_(&n, &alpha, a, &n, b, c, x, y);
    print_image();
    return y[1] != 22;
}
