/* A network that learns digits: layers with their own functions, tensors with gradients, convolution by matrices,
   pooling, batch normalization, dropout, a recurrent cell, softmax, and gradient descent with momentum or Adam. */
#include "../heap.h"
#include <float.h>
#include <xmmintrin.h>

typedef enum { LINEAR, RELU, LEAKY, LOGISTIC } ACTIVATION;
typedef enum { CONVOLUTIONAL, MAXPOOL, BATCHNORM, CONNECTED, DROPOUT, RECURRENT, SOFTMAX } LAYER_TYPE;
typedef enum { SGD, ADAM } POLICY;

/* Values and what the cost says of them, with the moments that the optimizer keeps. */
typedef struct tensor {
    int n, c, h, w;
    int size;
    float *data;
    float *grad;
    struct moments { float *first, *second; } m;
    char name[16];
    struct tensor *next;
} tensor;

struct network;
struct layer;
typedef struct network network;
typedef struct layer layer;

struct layer {
    LAYER_TYPE type;
    ACTIVATION activation;
    void (*forward)(layer *, network *);
    void (*backward)(layer *, network *);
    void (*describe)(const layer *, char *, size_t);
    int batch, inputs, outputs;
    int h, w, c, out_h, out_w, out_c;
    int size, stride, pad;
    float probability, scale;
    tensor *weights, *biases, *scales;
    tensor *output;
    union {
        struct { int *indexes; } pool;
        struct { float *mean, *variance, *rolling_mean, *rolling_variance, *x_norm, *mean_delta, *variance_delta; } norm;
        struct { float *mask; unsigned kept; } drop;
        struct { float *state, *previous; tensor *self; int steps; } rnn;
        struct { float *loss; int *truth; } soft;
    };
    size_t workspace_size;
    unsigned long calls;
};

typedef struct {
    int rows, cols;
    float **vals;
} matrix;

typedef struct {
    matrix X, y;
    const char **labels;
    int *order;
} data;

struct network {
    int n, batch;
    layer *layers;
    tensor *params;             /* all that is learnt */
    float *input, *delta, *truth, *workspace;
    int index, train;
    struct {
        POLICY policy;
        float learning_rate, momentum, decay, B1, B2, eps;
        float power1, power2;
        int t;
    } opt;
    float cost, *loss_history;
    unsigned long seen;
};

static struct nn_stats { unsigned long flops, right, wrong, epochs; float best; } stats;
static float activation_table[1024];    /* logistic from -8 to 8 */

/* ---- numbers ---- */

static float rand_uniform(float min, float max)
{
    return min + (max - min) * (float)(tr_rand() >> 40) / 16777216.f;
}

static inline float square_root(float x)
{
    return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
}

/* Without the mathematical library; four digits are enough. */
static float fast_exp(float x)
{
    union { float f; int i; } u;
    float y = x*1.44269504f, f;
    int whole = (int)(y < 0 ? y - 1 : y);
    if(whole < -126) return 0;
    if(whole > 126) whole = 126;
    f = (y - whole)*.69314718f;
    u.i = (whole + 127) << 23;
    return u.f*(1 + f*(1 + f*(.5f + f*(.16666667f + f*(.04166667f + f*.00833333f)))));
}

static float fast_log(float x)
{
    union { float f; int i; } u;
    float e, t;
    u.f = x;
    e = (float)((u.i >> 23) - 127);
    u.i = (u.i & 0x7fffff) | 127 << 23;
    t = (u.f - 1)/(u.f + 1);
    return e*.69314718f + 2*t*(1 + t*t*(.33333333f + t*t*(.2f + t*t*.14285714f)));
}

static void axpy_cpu(int N, float ALPHA, const float *X, int INCX, float *Y, int INCY)
{
    int i;
    for(i = 0; i < N; ++i) Y[i*INCY] += ALPHA*X[i*INCX];
}

static void scal_cpu(int N, float ALPHA, float *X)
{
    int i;
    for(i = 0; i < N; ++i) X[i] *= ALPHA;
}

static void fill_cpu(int N, float ALPHA, float *X)
{
    int i;
    for(i = 0; i < N; ++i) X[i] = ALPHA;
}

static NOINLINE void gemm_nn(int M, int N, int K, float ALPHA, const float *A, int lda, const float *B, int ldb, float *C, int ldc)
{
    int i,j,k;
    for(i = 0; i < M; ++i){
        for(k = 0; k < K; ++k){
            register float A_PART = ALPHA*A[i*lda+k];
            for(j = 0; j < N; ++j){
                C[i*ldc+j] += A_PART*B[k*ldb+j];
            }
        }
    }
}

static NOINLINE void gemm_nt(int M, int N, int K, float ALPHA, const float *A, int lda, const float *B, int ldb, float *C, int ldc)
{
    int i,j,k;
    for(i = 0; i < M; ++i){
        for(j = 0; j < N; ++j){
            register float sum = 0;
            for(k = 0; k < K; ++k){
                sum += ALPHA*A[i*lda+k]*B[j*ldb + k];
            }
            C[i*ldc+j] += sum;
        }
    }
}

static NOINLINE void gemm_tn(int M, int N, int K, float ALPHA, const float *A, int lda, const float *B, int ldb, float *C, int ldc)
{
    int i,j,k;
    for(i = 0; i < M; ++i){
        for(k = 0; k < K; ++k){
            register float A_PART = ALPHA*A[k*lda+i];
            for(j = 0; j < N; ++j){
                C[i*ldc+j] += A_PART*B[k*ldb+j];
            }
        }
    }
}

static void gemm(int TA, int TB, int M, int N, int K, float ALPHA, const float *A, int lda, const float *B, int ldb, float *C, int ldc)
{
    stats.flops += 2ul*M*N*K;
    if(!TA && !TB) gemm_nn(M, N, K, ALPHA, A, lda, B, ldb, C, ldc);
    else if(TA) gemm_tn(M, N, K, ALPHA, A, lda, B, ldb, C, ldc);
    else gemm_nt(M, N, K, ALPHA, A, lda, B, ldb, C, ldc);
}

static float im2col_get_pixel(const float *im, int height, int width, int row, int col, int channel, int pad)
{
    row -= pad;
    col -= pad;
    if (row < 0 || col < 0 || row >= height || col >= width) return 0;
    return im[col + width*(row + height*channel)];
}

static NOINLINE void im2col_cpu(const float *data_im, int channels, int height, int width, int ksize, int stride, int pad, float *data_col)
{
    int c,h,w;
    int height_col = (height + 2*pad - ksize) / stride + 1;
    int width_col = (width + 2*pad - ksize) / stride + 1;
    for (c = 0; c < channels*ksize*ksize; ++c) {
        int w_offset = c % ksize;
        int h_offset = (c / ksize) % ksize;
        int c_im = c / ksize / ksize;
        for (h = 0; h < height_col; ++h) {
            for (w = 0; w < width_col; ++w) {
                data_col[(c*height_col + h)*width_col + w] =
                    im2col_get_pixel(data_im, height, width, h_offset + h*stride, w_offset + w*stride, c_im, pad);
            }
        }
    }
}

static NOINLINE void col2im_cpu(const float *data_col, int channels, int height, int width, int ksize, int stride, int pad, float *data_im)
{
    int c,h,w;
    int height_col = (height + 2*pad - ksize) / stride + 1;
    int width_col = (width + 2*pad - ksize) / stride + 1;
    for (c = 0; c < channels*ksize*ksize; ++c) {
        int w_offset = c % ksize;
        int h_offset = (c / ksize) % ksize;
        int c_im = c / ksize / ksize;
        for (h = 0; h < height_col; ++h) {
            for (w = 0; w < width_col; ++w) {
                int row = h_offset + h*stride - pad, col = w_offset + w*stride - pad;
                if (row < 0 || col < 0 || row >= height || col >= width) continue;
                data_im[col + width*(row + height*c_im)] += data_col[(c*height_col + h)*width_col + w];
            }
        }
    }
}

/* ---- tensors ---- */

static tensor *make_tensor(const char *name, int n, int c, int h, int w)
{
    tensor *t = HEAP_CALLOC(tensor, 1);
    t->n = n;
    t->c = c;
    t->h = h;
    t->w = w;
    t->size = n*c*h*w;
    t->data = HEAP_CALLOC(float, t->size);
    t->grad = HEAP_CALLOC(float, t->size);
    snprintf(t->name, sizeof(t->name), "%s", name);
    return t;
}

static tensor *make_parameter(network *net, const char *name, int n, int c, int h, int w, float range)
{
    int i;
    tensor *t = make_tensor(name, n, c, h, w);
    for(i = 0; i < t->size; ++i) t->data[i] = range > 0 ? rand_uniform(-range, range) : 0;
    t->m.first = HEAP_CALLOC(float, t->size);
    t->m.second = HEAP_CALLOC(float, t->size);
    t->next = net->params;
    net->params = t;
    return t;
}

/* ---- activations ---- */

static inline float logistic(float x)
{
    int i = (int)((x + 8) * 64);
    return i < 0 ? activation_table[0] : i > 1023 ? activation_table[1023] : activation_table[i];
}

static NOINLINE void activate_array(float *x, int n, ACTIVATION a)
{
    int i;
    switch(a){
        case RELU: for(i = 0; i < n; ++i) x[i] = x[i] > 0 ? x[i] : 0; break;
        case LEAKY: for(i = 0; i < n; ++i) x[i] = x[i] > 0 ? x[i] : .1f*x[i]; break;
        case LOGISTIC: for(i = 0; i < n; ++i) x[i] = logistic(x[i]); break;
        default: break;
    }
}

static NOINLINE void gradient_array(const float *x, int n, ACTIVATION a, float *delta)
{
    int i;
    switch(a){
        case RELU: for(i = 0; i < n; ++i) delta[i] *= x[i] > 0; break;
        case LEAKY: for(i = 0; i < n; ++i) delta[i] *= x[i] > 0 ? 1 : .1f; break;
        case LOGISTIC: for(i = 0; i < n; ++i) delta[i] *= (1 - x[i])*x[i]; break;
        default: break;
    }
}

static void add_bias(float *output, const float *biases, int batch, int n, int size)
{
    int i,j,b;
    for(b = 0; b < batch; ++b)
        for(i = 0; i < n; ++i)
            for(j = 0; j < size; ++j) output[(b*n + i)*size + j] += biases[i];
}

static void backward_bias(float *bias_updates, const float *delta, int batch, int n, int size)
{
    int i,j,b;
    for(b = 0; b < batch; ++b)
        for(i = 0; i < n; ++i)
            for(j = 0; j < size; ++j) bias_updates[i] += delta[(b*n + i)*size + j];
}

/* ---- convolution ---- */

static void forward_convolutional_layer(layer *l, network *net)
{
    int i, m = l->out_c, k = l->size*l->size*l->c, n = l->out_w*l->out_h;
    fill_cpu(l->outputs*l->batch, 0, l->output->data);
    for(i = 0; i < l->batch; ++i){
        im2col_cpu(net->input + i*l->inputs, l->c, l->h, l->w, l->size, l->stride, l->pad, net->workspace);
        gemm(0, 0, m, n, k, 1, l->weights->data, k, net->workspace, n, l->output->data + i*n*m, n);
    }
    add_bias(l->output->data, l->biases->data, l->batch, l->out_c, n);
    activate_array(l->output->data, l->outputs*l->batch, l->activation);
}

static void backward_convolutional_layer(layer *l, network *net)
{
    int i, m = l->out_c, n = l->size*l->size*l->c, k = l->out_w*l->out_h;
    gradient_array(l->output->data, l->outputs*l->batch, l->activation, l->output->grad);
    backward_bias(l->biases->grad, l->output->grad, l->batch, l->out_c, k);
    for(i = 0; i < l->batch; ++i){
        float *a = l->output->grad + i*m*k;
        im2col_cpu(net->input + i*l->inputs, l->c, l->h, l->w, l->size, l->stride, l->pad, net->workspace);
        gemm(0, 1, m, n, k, 1, a, k, net->workspace, k, l->weights->grad, n);
        if(net->delta){
            fill_cpu(n*k, 0, net->workspace);
            gemm(1, 0, n, k, m, 1, l->weights->data, n, a, k, net->workspace, k);
            col2im_cpu(net->workspace, l->c, l->h, l->w, l->size, l->stride, l->pad, net->delta + i*l->inputs);
        }
    }
}

static void describe_convolutional_layer(const layer *l, char *text, size_t size)
{
    snprintf(text, size, "conv %d x %d x %d -> %d x %d x %d", l->w, l->h, l->c, l->out_w, l->out_h, l->out_c);
}

static layer make_convolutional_layer(network *net, int h, int w, int c, int n, int size, ACTIVATION activation)
{
    layer l = {0};
    l.type = CONVOLUTIONAL;
    l.h = h; l.w = w; l.c = c;
    l.size = size; l.stride = 1; l.pad = size/2;
    l.batch = net->batch;
    l.out_h = h; l.out_w = w; l.out_c = n;
    l.inputs = h*w*c;
    l.outputs = h*w*n;
    l.weights = make_parameter(net, "filters", n, c, size, size, square_root(2.f/(size*size*c)));
    l.biases = make_parameter(net, "biases", 1, n, 1, 1, 0);
    l.output = make_tensor("conv", l.batch, n, h, w);
    l.workspace_size = (size_t)h*w*size*size*c;
    l.activation = activation;
    l.forward = forward_convolutional_layer;
    l.backward = backward_convolutional_layer;
    l.describe = describe_convolutional_layer;
    return l;
}

/* ---- pooling ---- */

static void forward_maxpool_layer(layer *l, network *net)
{
    int b,i,j,k,m,n;
    for(b = 0; b < l->batch; ++b){
        for(k = 0; k < l->c; ++k){
            for(i = 0; i < l->out_h; ++i){
                for(j = 0; j < l->out_w; ++j){
                    int out_index = j + l->out_w*(i + l->out_h*(k + l->c*b));
                    float max = -FLT_MAX;
                    int max_i = -1;
                    for(n = 0; n < l->size; ++n){
                        for(m = 0; m < l->size; ++m){
                            int index = j*l->stride + m + l->w*(i*l->stride + n + l->h*(k + b*l->c));
                            float val = net->input[index];
                            max_i = val > max ? index : max_i;
                            max = val > max ? val : max;
                        }
                    }
                    l->output->data[out_index] = max;
                    l->pool.indexes[out_index] = max_i;
                }
            }
        }
    }
}

static void backward_maxpool_layer(layer *l, network *net)
{
    int i;
    for(i = 0; i < l->outputs*l->batch; ++i) net->delta[l->pool.indexes[i]] += l->output->grad[i];
}

static void describe_shape(const layer *l, char *text, size_t size)
{
    snprintf(text, size, "layer %d: %d -> %d", l->type, l->inputs, l->outputs);
}

static layer make_maxpool_layer(network *net, int h, int w, int c)
{
    layer l = {0};
    l.type = MAXPOOL;
    l.batch = net->batch;
    l.h = h; l.w = w; l.c = l.out_c = c;
    l.size = l.stride = 2;
    l.out_h = h/2; l.out_w = w/2;
    l.inputs = h*w*c;
    l.outputs = l.out_h*l.out_w*c;
    l.pool.indexes = HEAP_CALLOC(int, l.outputs*l.batch);
    l.output = make_tensor("pool", l.batch, c, l.out_h, l.out_w);
    l.forward = forward_maxpool_layer;
    l.backward = backward_maxpool_layer;
    l.describe = describe_shape;
    return l;
}

/* ---- batch normalization ---- */

static void forward_batchnorm_layer(layer *l, network *net)
{
    int b,f,i, spatial = l->out_h*l->out_w;
    float scale = 1.f/(l->batch*spatial);
    for(f = 0; f < l->out_c; ++f){
        float mean = 0, variance = 0;
        for(b = 0; b < l->batch; ++b)
            for(i = 0; i < spatial; ++i) mean += net->input[(b*l->out_c + f)*spatial + i];
        mean *= scale;
        for(b = 0; b < l->batch; ++b)
            for(i = 0; i < spatial; ++i){
                float d = net->input[(b*l->out_c + f)*spatial + i] - mean;
                variance += d*d;
            }
        variance *= scale;
        l->norm.mean[f] = mean;
        l->norm.variance[f] = variance;
        if(net->train){
            l->norm.rolling_mean[f] = .99f*l->norm.rolling_mean[f] + .01f*mean;
            l->norm.rolling_variance[f] = .99f*l->norm.rolling_variance[f] + .01f*variance;
        }
    }
    for(b = 0; b < l->batch; ++b)
        for(f = 0; f < l->out_c; ++f){
            float inverse = 1/square_root(l->norm.variance[f] + .00001f);
            for(i = 0; i < spatial; ++i){
                int index = (b*l->out_c + f)*spatial + i;
                float x = (net->input[index] - l->norm.mean[f])*inverse;
                l->norm.x_norm[index] = x;
                l->output->data[index] = x*(1 + l->scales->data[f]) + l->biases->data[f];
            }
        }
}

static void backward_batchnorm_layer(layer *l, network *net)
{
    int b,f,i, spatial = l->out_h*l->out_w;
    float scale = 1.f/(l->batch*spatial);
    backward_bias(l->biases->grad, l->output->grad, l->batch, l->out_c, spatial);
    for(f = 0; f < l->out_c; ++f){
        float sum = 0, product = 0, inverse = (1 + l->scales->data[f])/square_root(l->norm.variance[f] + .00001f);
        for(b = 0; b < l->batch; ++b)
            for(i = 0; i < spatial; ++i){
                int index = (b*l->out_c + f)*spatial + i;
                sum += l->output->grad[index];
                product += l->output->grad[index]*l->norm.x_norm[index];
            }
        l->scales->grad[f] += product;
        l->norm.mean_delta[f] = sum*scale;
        l->norm.variance_delta[f] = product*scale;
        for(b = 0; b < l->batch; ++b)
            for(i = 0; i < spatial; ++i){
                int index = (b*l->out_c + f)*spatial + i;
                net->delta[index] += inverse*(l->output->grad[index] - l->norm.mean_delta[f] - l->norm.x_norm[index]*l->norm.variance_delta[f]);
            }
    }
}

static layer make_batchnorm_layer(network *net, int h, int w, int c)
{
    layer l = {0};
    l.type = BATCHNORM;
    l.batch = net->batch;
    l.h = l.out_h = h; l.w = l.out_w = w; l.c = l.out_c = c;
    l.inputs = l.outputs = h*w*c;
    l.scales = make_parameter(net, "scales", 1, c, 1, 1, 0);
    l.biases = make_parameter(net, "shifts", 1, c, 1, 1, 0);
    l.output = make_tensor("norm", l.batch, c, h, w);
    l.norm.mean = HEAP_CALLOC(float, c);
    l.norm.variance = HEAP_CALLOC(float, c);
    l.norm.rolling_mean = HEAP_CALLOC(float, c);
    l.norm.rolling_variance = HEAP_CALLOC(float, c);
    l.norm.mean_delta = HEAP_CALLOC(float, c);
    l.norm.variance_delta = HEAP_CALLOC(float, c);
    l.norm.x_norm = HEAP_CALLOC(float, l.batch*l.outputs);
    l.forward = forward_batchnorm_layer;
    l.backward = backward_batchnorm_layer;
    l.describe = describe_shape;
    return l;
}

/* ---- full connections, dropout, a recurrent cell ---- */

static void forward_connected_layer(layer *l, network *net)
{
    fill_cpu(l->outputs*l->batch, 0, l->output->data);
    gemm(0, 1, l->batch, l->outputs, l->inputs, 1, net->input, l->inputs, l->weights->data, l->inputs, l->output->data, l->outputs);
    add_bias(l->output->data, l->biases->data, l->batch, l->outputs, 1);
    activate_array(l->output->data, l->outputs*l->batch, l->activation);
}

static void backward_connected_layer(layer *l, network *net)
{
    gradient_array(l->output->data, l->outputs*l->batch, l->activation, l->output->grad);
    backward_bias(l->biases->grad, l->output->grad, l->batch, l->outputs, 1);
    gemm(1, 0, l->outputs, l->inputs, l->batch, 1, l->output->grad, l->outputs, net->input, l->inputs, l->weights->grad, l->inputs);
    if(net->delta) gemm(0, 0, l->batch, l->inputs, l->outputs, 1, l->output->grad, l->outputs, l->weights->data, l->inputs, net->delta, l->inputs);
}

static layer make_connected_layer(network *net, int inputs, int outputs, ACTIVATION activation)
{
    layer l = {0};
    l.type = CONNECTED;
    l.batch = net->batch;
    l.inputs = inputs;
    l.outputs = outputs;
    l.out_h = l.out_w = 1; l.out_c = outputs;
    l.weights = make_parameter(net, "weights", outputs, inputs, 1, 1, square_root(2.f/inputs));
    l.biases = make_parameter(net, "biases", 1, outputs, 1, 1, 0);
    l.output = make_tensor("connected", l.batch, outputs, 1, 1);
    l.activation = activation;
    l.forward = forward_connected_layer;
    l.backward = backward_connected_layer;
    l.describe = describe_shape;
    return l;
}

static void forward_dropout_layer(layer *l, network *net)
{
    int i;
    float *output = l->output->data;
    for(i = 0; i < l->batch*l->inputs; ++i){
        float r = net->train ? rand_uniform(0, 1) : 1;
        l->drop.mask[i] = r;
        if(r < l->probability) output[i] = 0;
        else{
            output[i] = net->input[i]*(net->train ? l->scale : 1);
            l->drop.kept++;
        }
    }
}

static void backward_dropout_layer(layer *l, network *net)
{
    int i;
    for(i = 0; i < l->batch*l->inputs; ++i)
        net->delta[i] += l->drop.mask[i] < l->probability ? 0 : l->output->grad[i]*l->scale;
}

static layer make_dropout_layer(network *net, int inputs, float probability)
{
    layer l = {0};
    l.type = DROPOUT;
    l.batch = net->batch;
    l.inputs = l.outputs = inputs;
    l.probability = probability;
    l.scale = 1.f/(1.f - probability);
    l.output = make_tensor("dropout", l.batch, inputs, 1, 1);
    l.drop.mask = HEAP_CALLOC(float, l.batch*inputs);
    l.forward = forward_dropout_layer;
    l.backward = backward_dropout_layer;
    l.describe = describe_shape;
    return l;
}

/* The state of the step before is taken as it is: the gradient goes back by one step only. */
static void forward_recurrent_layer(layer *l, network *net)
{
    float *t = l->rnn.previous;
    l->rnn.previous = l->rnn.state;
    l->rnn.state = t;
    if(l->rnn.steps++ % 16 == 0) fill_cpu(l->outputs*l->batch, 0, l->rnn.previous);
    fill_cpu(l->outputs*l->batch, 0, l->rnn.state);
    gemm(0, 1, l->batch, l->outputs, l->inputs, 1, net->input, l->inputs, l->weights->data, l->inputs, l->rnn.state, l->outputs);
    gemm(0, 1, l->batch, l->outputs, l->outputs, 1, l->rnn.previous, l->outputs, l->rnn.self->data, l->outputs, l->rnn.state, l->outputs);
    add_bias(l->rnn.state, l->biases->data, l->batch, l->outputs, 1);
    activate_array(l->rnn.state, l->outputs*l->batch, l->activation);
    fill_cpu(l->outputs*l->batch, 0, l->output->data);
    axpy_cpu(l->outputs*l->batch, 1, l->rnn.state, 1, l->output->data, 1);
}

static void backward_recurrent_layer(layer *l, network *net)
{
    backward_connected_layer(l, net);
    gemm(1, 0, l->outputs, l->outputs, l->batch, 1, l->output->grad, l->outputs, l->rnn.previous, l->outputs, l->rnn.self->grad, l->outputs);
}

static layer make_recurrent_layer(network *net, int inputs, int outputs)
{
    layer l = make_connected_layer(net, inputs, outputs, LOGISTIC);
    l.type = RECURRENT;
    l.rnn.self = make_parameter(net, "self", outputs, outputs, 1, 1, .1f);
    l.rnn.state = HEAP_CALLOC(float, outputs*l.batch);
    l.rnn.previous = HEAP_CALLOC(float, outputs*l.batch);
    l.forward = forward_recurrent_layer;
    l.backward = backward_recurrent_layer;
    return l;
}

/* ---- the end ---- */

static void softmax(const float *input, int n, float *output)
{
    int i;
    float sum = 0, largest = -FLT_MAX;
    for(i = 0; i < n; ++i) if(input[i] > largest) largest = input[i];
    for(i = 0; i < n; ++i){
        float e = fast_exp(input[i] - largest);
        sum += e;
        output[i] = e;
    }
    for(i = 0; i < n; ++i) output[i] /= sum;
}

static void forward_softmax_layer(layer *l, network *net)
{
    int b,i;
    net->cost = 0;
    for(b = 0; b < l->batch; ++b){
        float *out = l->output->data + b*l->inputs, *truth = net->truth + b*l->inputs;
        int best = 0;
        softmax(net->input + b*l->inputs, l->inputs, out);
        for(i = 0; i < l->inputs; ++i){
            l->output->grad[b*l->inputs + i] = truth[i] - out[i];
            if(out[i] > out[best]) best = i;
            if(truth[i] > 0) l->soft.truth[b] = i;
        }
        l->soft.loss[b] = -fast_log(out[l->soft.truth[b]] + .000001f);
        net->cost += l->soft.loss[b]/l->batch;
        if(best == l->soft.truth[b]) stats.right++;
        else stats.wrong++;
    }
}

static void backward_softmax_layer(layer *l, network *net)
{
    axpy_cpu(l->inputs*l->batch, 1, l->output->grad, 1, net->delta, 1);
}

static layer make_softmax_layer(network *net, int inputs)
{
    layer l = {0};
    l.type = SOFTMAX;
    l.batch = net->batch;
    l.inputs = l.outputs = inputs;
    l.soft.loss = HEAP_CALLOC(float, l.batch);
    l.soft.truth = HEAP_CALLOC(int, l.batch);
    l.output = make_tensor("softmax", l.batch, inputs, 1, 1);
    l.forward = forward_softmax_layer;
    l.backward = backward_softmax_layer;
    l.describe = describe_shape;
    return l;
}

/* ---- networks ---- */

static NOINLINE void forward_network(network *net, float *input)
{
    int i;
    net->input = input;
    for(i = 0; i < net->n; ++i){
        layer *l = &net->layers[i];
        net->index = i;
        if(l->type != SOFTMAX) fill_cpu(l->outputs*l->batch, 0, l->output->grad);
        l->forward(l, net);
        l->calls++;
        net->input = l->output->data;
    }
}

static NOINLINE void backward_network(network *net, float *input)
{
    int i;
    for(i = net->n - 1; i >= 0; --i){
        layer *l = &net->layers[i];
        net->index = i;
        net->input = i ? net->layers[i-1].output->data : input;
        net->delta = i ? net->layers[i-1].output->grad : NULL;
        l->backward(l, net);
    }
}

static NOINLINE void update_sgd(network *net, tensor *t)
{
    int i;
    float rate = net->opt.learning_rate/net->batch;
    axpy_cpu(t->size, -net->opt.decay*net->batch, t->data, 1, t->grad, 1);
    for(i = 0; i < t->size; ++i){
        t->m.first[i] = net->opt.momentum*t->m.first[i] + rate*t->grad[i];
        t->data[i] += t->m.first[i];
    }
    fill_cpu(t->size, 0, t->grad);
}

static NOINLINE void update_adam(network *net, tensor *t)
{
    int i;
    float B1 = net->opt.B1, B2 = net->opt.B2, rate = net->opt.learning_rate/10;
    float c1 = 1/(1 - net->opt.power1), c2 = 1/(1 - net->opt.power2);
    scal_cpu(t->size, 1.f/net->batch, t->grad);
    for(i = 0; i < t->size; ++i){
        t->m.first[i] = B1*t->m.first[i] + (1 - B1)*t->grad[i];
        t->m.second[i] = B2*t->m.second[i] + (1 - B2)*t->grad[i]*t->grad[i];
        t->data[i] += rate*t->m.first[i]*c1/(square_root(t->m.second[i]*c2) + net->opt.eps);
    }
    fill_cpu(t->size, 0, t->grad);
}

static void update_network(network *net)
{
    tensor *t;
    net->opt.t++;
    net->opt.power1 *= net->opt.B1;
    net->opt.power2 *= net->opt.B2;
    for(t = net->params; t; t = t->next){
        if(net->opt.policy == ADAM) update_adam(net, t);
        else update_sgd(net, t);
    }
}

static NOINLINE void get_next_batch(data *d, int n, int offset, float *X, float *y)
{
    int j,k;
    for(j = 0; j < n; ++j){
        int index = d->order[(offset + j) % d->X.rows];
        for(k = 0; k < d->X.cols; ++k) X[j*d->X.cols + k] = d->X.vals[index][k];
        for(k = 0; k < d->y.cols; ++k) y[j*d->y.cols + k] = d->y.vals[index][k];
    }
}

static NOINLINE void shuffle_data(data *d)
{
    int i;
    for(i = d->X.rows - 1; i > 0; --i){
        int j = (int)(tr_rand() % (unsigned)(i + 1)), t = d->order[i];
        d->order[i] = d->order[j];
        d->order[j] = t;
    }
}

static void train_network(network *net, data *d, float *X)
{
    get_next_batch(d, net->batch, (int)(net->seen % (unsigned long)d->X.rows), X, net->truth);
    net->train = net->seen/net->batch % 5 != 0;
    forward_network(net, X);
    if(net->train){
        backward_network(net, X);
        update_network(net);
    }
    net->loss_history[net->seen/net->batch % 256] = net->cost;
    net->seen += net->batch;
    if(net->seen % d->X.rows < (unsigned long)net->batch){
        shuffle_data(d);
        stats.epochs++;
    }
}

#define SIDE 14
#define CLASSES 6

static matrix make_matrix(int rows, int cols)
{
    int i;
    matrix m = { rows, cols, HEAP_CALLOC(float *, rows) };
    for(i = 0; i < rows; ++i) m.vals[i] = HEAP_CALLOC(float, cols);
    return m;
}

/* Bars, boxes, crosses at some place. */
static void draw_example(float *im, int kind)
{
    int x,y, cx = 5 + (int)(tr_rand() % 4), cy = 5 + (int)(tr_rand() % 4);
    for(y = 0; y < SIDE; ++y)
        for(x = 0; x < SIDE; ++x){
            int dx = x - cx, dy = y - cy, on = 0;
            switch(kind){
                case 0: on = dx == 0; break;
                case 1: on = dy == 0; break;
                case 2: on = dx == dy; break;
                case 3: on = dx == 0 || dy == 0; break;
                case 4: on = abs(dx) <= 3 && abs(dy) <= 3 && (abs(dx) == 3 || abs(dy) == 3); break;
                default: on = dx*dx + dy*dy < 12;
            }
            im[y*SIDE + x] = (on ? .8f : 0) + rand_uniform(0, .3f);
        }
}

static network *make_network(int batch, POLICY policy)
{
    int i;
    size_t workspace = 1;
    network *net = HEAP_CALLOC(network, 1);
    net->batch = batch;
    net->n = 9;
    net->layers = HEAP_CALLOC(layer, net->n);
    net->opt.policy = policy;
    net->opt.learning_rate = .02f;
    net->opt.momentum = .9f;
    net->opt.decay = .0005f;
    net->opt.B1 = .9f;
    net->opt.B2 = .999f;
    net->opt.power1 = net->opt.power2 = 1;
    net->opt.eps = .0000001f;
    net->layers[0] = make_convolutional_layer(net, SIDE, SIDE, 1, 4, 3, LEAKY);
    net->layers[1] = make_maxpool_layer(net, SIDE, SIDE, 4);
    net->layers[2] = make_batchnorm_layer(net, SIDE/2, SIDE/2, 4);
    net->layers[3] = make_convolutional_layer(net, SIDE/2, SIDE/2, 4, 6, 3, RELU);
    net->layers[4] = make_connected_layer(net, SIDE/2*(SIDE/2)*6, 24, LEAKY);
    net->layers[5] = make_dropout_layer(net, 24, .2f);
    net->layers[6] = make_recurrent_layer(net, 24, 16);
    net->layers[7] = make_connected_layer(net, 16, CLASSES, LINEAR);
    net->layers[8] = make_softmax_layer(net, CLASSES);
    for(i = 0; i < net->n; ++i)
        if(net->layers[i].workspace_size > workspace) workspace = net->layers[i].workspace_size;
    net->workspace = HEAP_CALLOC(float, workspace);
    net->truth = HEAP_CALLOC(float, batch*CLASSES);
    net->loss_history = HEAP_CALLOC(float, 256);
    return net;
}

int main(int argc, char **argv)
{
    static const char *names[CLASSES] = { "bar", "dash", "slash", "cross", "box", "disc" };
    network *nets[2];
    data d;
    float *X;
    int i;
    tr_init(argc, argv);
    TR_GLOBAL(stats, "struct nn_stats");
    TR_GLOBAL(activation_table, "float []");
    TR_LOCAL(d, "data");
    TR_CHECK(layer, workspace_size);
    TR_CHECK(tensor, next);
    TR_CHECK(network, seen);
    for(i = 0; i < 1024; ++i) activation_table[i] = 1/(1 + fast_exp(-((float)i/64 - 8)));
    d.X = make_matrix(120, SIDE*SIDE);
    d.y = make_matrix(120, CLASSES);
    d.labels = names;
    d.order = HEAP_CALLOC(int, d.X.rows);
    for(i = 0; i < d.X.rows; ++i){
        draw_example(d.X.vals[i], i % CLASSES);
        d.y.vals[i][i % CLASSES] = 1;
        d.order[i] = i;
    }
    nets[0] = make_network(4, SGD);
    nets[1] = make_network(6, ADAM);
    X = HEAP_CALLOC(float, 6*d.X.cols);
    while(tr_more())
        for(i = 0; i < 2; ++i) train_network(nets[i], &d, X);
    if(getenv("VERBOSE")){
        for(i = 0; i < nets[0]->n; ++i){
            char text[64];
            nets[0]->layers[i].describe(&nets[0]->layers[i], text, sizeof(text));
            printf("%s\n", text);
        }
        printf("%lu epochs, %lu right, %lu wrong, cost %f and %f, %s first\n", stats.epochs, stats.right, stats.wrong, nets[0]->cost, nets[1]->cost, d.labels[0]);
    }
    tr_sink = stats.right;
    return 0;
}
