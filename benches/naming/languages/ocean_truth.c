/* What ocean.f90 cannot tell itself: the descriptors of its module arrays, which have no address in Fortran,
 * and its COMMON block. Built without debug information, as the truth runtime is. */
#include "truth.h"

enum { DESCRIPTOR = 40, DIMENSION = 24 }; /* bytes: address, offset, type, span; then each dimension */

#define TELL_DESCRIPTOR(module, name, rank)                              \
    do {                                                                 \
        extern char __##module##_MOD_##name[DESCRIPTOR + (rank) * DIMENSION]; \
        TR_GLOBAL_NAMED(#module "::" #name, __##module##_MOD_##name, "descriptor");   \
    } while (0)
#define TR_GLOBAL_NAMED(name, variable, type) tr_global(name, &(variable), sizeof(variable), type)

struct solver {
    double omega, tol, work[32][48], resid[64];
    int iters, limits[7];
};
extern struct solver solver_;
/* Pointers that are no arrays. */
extern void *__drift_MOD_free_obs, *__drift_MOD_root, *__drift_MOD_free_nodes;
extern void *__drift_MOD_chain[2];

void ocean_truth(void) {
    TELL_DESCRIPTOR(grids, columns, 2);
    TELL_DESCRIPTOR(grids, fields, 1);
    TELL_DESCRIPTOR(grids, eta, 2);
    TELL_DESCRIPTOR(grids, tracer, 3);
    TELL_DESCRIPTOR(spectra, line, 1);
    TELL_DESCRIPTOR(spectra, spectrum, 2);
    TELL_DESCRIPTOR(drift, fleet, 1);
    TR_GLOBAL_NAMED("solver::omega", solver_.omega, "real(kind=8)");
    TR_GLOBAL_NAMED("solver::tol", solver_.tol, "real(kind=8)");
    TR_GLOBAL_NAMED("solver::work", solver_.work, "real(kind=8)[]");
    TR_GLOBAL_NAMED("solver::resid", solver_.resid, "real(kind=8)[]");
    TR_GLOBAL_NAMED("solver::iters", solver_.iters, "integer(kind=4)");
    TR_GLOBAL_NAMED("solver::limits", solver_.limits, "integer(kind=4)[]");
    TR_GLOBAL_NAMED("drift::free_obs", __drift_MOD_free_obs, "obs_t*");
    TR_GLOBAL_NAMED("drift::root", __drift_MOD_root, "node_t*");
    TR_GLOBAL_NAMED("drift::free_nodes", __drift_MOD_free_nodes, "node_t*");
    TR_GLOBAL_NAMED("drift::chain", __drift_MOD_chain, "__class_drift_Body_t_p");
}
