/* ADBench's objectives (formulas: arXiv:1807.10129) and adjoints written by hand: sticks to measure against.

   Arguments are as in examples/adbench. Each adjoint keeps what its reverse sweep needs in `memory`, which the caller
   brings, and computes nothing twice that takes more than arithmetic. */
#include <math.h>
#include <string.h>

/* -- GMM ----------------------------------------------------------------------------------------------------------- */

static double log_sum_exp(int n, const double *x, double *weights) {
  double highest = x[0], sum = 0;
  for (int i = 1; i < n; i++) if (x[i] > highest) highest = x[i];
  for (int i = 0; i < n; i++) sum += weights[i] = exp(x[i] - highest);
  for (int i = 0; i < n; i++) weights[i] /= sum;
  return highest + log(sum);
}

/* y = L c, L lower triangular: e = its diagonal, l = what is below, column by column */
static void transform(int d, const double *e, const double *l, const double *c, double *y) {
  for (int i = 0; i < d; i++) y[i] = e[i] * c[i];
  for (int i = 0; i < d; i++) for (int j = i + 1; j < d; j++) y[j] += *l++ * c[i];
}

static double prior(int d, int k, const double *e, const double *logs, const double *l, double gamma, int m) {
  int w = d + m + 1;
  double lgammas = 0.25 * d * (d - 1) * log(M_PI), squares = 0, sum = 0;
  for (int j = 0; j < d; j++) lgammas += lgamma(0.5 * w - 0.5 * j);
  for (int i = 0; i < k * d; i++) squares += e[i] * e[i], sum += logs[i];
  for (int i = 0; i < k * d * (d - 1) / 2; i++) squares += l[i] * l[i];
  return k * (w * d * log(gamma / sqrt(2.0)) - lgammas) - 0.5 * gamma * gamma * squares + m * sum;
}

/* memory: 2 k (1 + d) + 2 d k; with g = NULL the value alone. g: alphas, means, logs, l */
double gmm(int n, int d, int k, const double *alphas, const double *means, const double *logs, const double *l,
           const double *points, double gamma, int m, double *g, double *memory) {
  int t = d * (d - 1) / 2;
  double *e = memory, *levels = e + k * d, *terms = levels + k, *c = terms + k, *y = c + k * d, total = 0;
  double *ga = g, *gm = g + k, *gq = gm + k * d, *gl = gq + k * d;
  if (g) memset(g, 0, sizeof(double) * k * (1 + 2 * d + t));
  for (int i = 0; i < k * d; i++) e[i] = exp(logs[i]);
  for (int j = 0; j < k; j++) {
    levels[j] = alphas[j];
    for (int i = 0; i < d; i++) levels[j] += logs[j * d + i];
  }
  for (int p = 0; p < n; p++) {
    for (int j = 0; j < k; j++) {
      double square = 0, *cj = c + (g ? j * d : 0), *yj = y + (g ? j * d : 0);
      for (int i = 0; i < d; i++) cj[i] = points[p * d + i] - means[j * d + i];
      transform(d, e + j * d, l + j * t, cj, yj);
      for (int i = 0; i < d; i++) square += yj[i] * yj[i];
      terms[j] = levels[j] - 0.5 * square;
    }
    total += log_sum_exp(k, terms, terms);
    if (!g) continue;
    for (int j = 0; j < k; j++) { /* terms[j] is now the weight of component j */
      double w = terms[j], *cj = c + j * d, *yj = y + j * d, *glj = gl + j * t;
      const double *lj = l + j * t, *ej = e + j * d;
      ga[j] += w;
      for (int i = 0; i < d; i++) yj[i] *= w;
      for (int i = 0; i < d; i++) {
        double b = ej[i] * yj[i];
        gq[j * d + i] += w - b * cj[i];
        for (int r = i + 1; r < d; r++) { b += *lj++ * yj[r]; *glj++ -= yj[r] * cj[i]; }
        gm[j * d + i] += b;
      }
    }
  }
  total -= n * log_sum_exp(k, alphas, terms) + 0.5 * n * d * log(2 * M_PI);
  if (g) {
    for (int j = 0; j < k; j++) ga[j] -= n * terms[j];
    for (int i = 0; i < k * d; i++) gq[i] += m - gamma * gamma * e[i] * e[i];
    for (int i = 0; i < k * t; i++) gl[i] -= gamma * gamma * l[i];
  }
  return total + prior(d, k, e, logs, l, gamma, m);
}

/* -- BA ------------------------------------------------------------------------------------------------------------ */

static void cross(const double *a, const double *b, double *c) {
  c[0] = a[1] * b[2] - a[2] * b[1]; c[1] = a[2] * b[0] - a[0] * b[2]; c[2] = a[0] * b[1] - a[1] * b[0];
}

static double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/* residuals: 2p + p; jacobian (or NULL): the 2p rows of 15 entries, then the p entries -2 w */
void ba(int n, int m, int p, const double *cameras, const double *points, const double *weights,
        const double *features, double *residuals, double *jacobian) {
  for (int o = 0; o < p; o++) {
    const double *cam = cameras + 11 * (o % n), *point = points + 3 * (o % m);
    double w = weights[o], x[3], a[3], ax[3], y[3], square = dot(cam, cam), theta = sqrt(square), co = 1, si = 0, along;
    for (int i = 0; i < 3; i++) { x[i] = point[i] - cam[3 + i]; a[i] = square == 0 ? cam[i] : cam[i] / theta; }
    cross(a, x, ax);
    if (square == 0) { for (int i = 0; i < 3; i++) y[i] = x[i] + ax[i]; along = 0; }
    else {
      co = cos(theta); si = sin(theta); along = dot(a, x);
      for (int i = 0; i < 3; i++) y[i] = x[i] * co + ax[i] * si + a[i] * along * (1 - co);
    }
    double u = y[0] / y[2], v = y[1] / y[2], s = u * u + v * v, dist = 1 + cam[9] * s + cam[10] * s * s;
    double scale = cam[6] * dist, pu = u * scale + cam[7], pv = v * scale + cam[8];
    residuals[2 * o] = w * (pu - features[2 * o]); residuals[2 * o + 1] = w * (pv - features[2 * o + 1]);
    residuals[2 * p + o] = 1 - w * w;
    if (!jacobian) continue;
    double slope = cam[6] * (cam[9] + 2 * cam[10] * s);
    for (int r = 0; r < 2; r++) { /* reverse from each of the two */
      double *row = jacobian + 30 * (size_t)o + 15 * r, q = r ? v : u, sb = w * q * slope, yb[3], xb[3], ab[3], yxa[3];
      double ub = 2 * u * sb + (r ? 0 : w * scale), vb = 2 * v * sb + (r ? w * scale : 0);
      row[6] = w * q * dist; row[7] = r ? 0 : w; row[8] = r ? w : 0;
      row[9] = w * q * cam[6] * s; row[10] = row[9] * s; row[14] = (r ? pv : pu) - features[2 * o + r];
      yb[0] = ub / y[2]; yb[1] = vb / y[2]; yb[2] = -(u * ub + v * vb) / y[2];
      cross(yb, a, yxa);
      if (square == 0) { cross(x, yb, row); for (int i = 0; i < 3; i++) xb[i] = yb[i] + yxa[i]; }
      else {
        double ya = dot(a, yb), tb = -si * dot(x, yb) + co * dot(ax, yb) + si * along * ya, aab;
        cross(x, yb, ab);
        for (int i = 0; i < 3; i++) {
          xb[i] = yb[i] * co + yxa[i] * si + a[i] * ya * (1 - co);
          ab[i] = ab[i] * si + (1 - co) * (along * yb[i] + x[i] * ya);
        }
        aab = dot(a, ab);
        for (int i = 0; i < 3; i++) row[i] = (ab[i] - a[i] * aab) / theta + a[i] * tb;
      }
      for (int i = 0; i < 3; i++) row[3 + i] = -xb[i], row[11 + i] = xb[i];
    }
    jacobian[30 * (size_t)p + o] = -2 * w;
  }
}

/* -- LSTM ---------------------------------------------------------------------------------------------------------- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* g (or NULL): main, extra. memory: ((c - 1) (8 l + 2) + 2 l + 3) b; without g (6 l + 2) b would do */
double lstm(int l, int c, int b, const double *main_, const double *extra, const double *state, const double *text,
            double *g, double *memory) {
  int L = 8 * l * b, step = g ? L + 2 * b : 0;
  double *now = memory + (size_t)step * (c - 1) + (g ? 0 : L + 2 * b), *zb = now + 2 * l * b, total = 0;
  memcpy(now, state, sizeof(double) * 2 * l * b);
  for (int t = 0; t < c - 1; t++) { /* a step keeps for each layer 8 rows: h, z, cell, four gates, tanh; then z, y */
    double *kept = memory + (size_t)step * t, *y = kept + L, sum = 2;
    const double *next = text + (size_t)(t + 1) * b;
    for (int j = 0; j < b; j++) y[j] = text[(size_t)t * b + j] * extra[j];
    for (int k = 0; k < l; k++) {
      const double *w = main_ + 8 * k * b, *o = w + 4 * b;
      double *q = kept + 8 * k * b, *h = now + 2 * k * b, *cell = h + b;
      for (int j = 0; j < b; j++) {
        double z = y[j], f = sigmoid(z * w[j] + o[j]), i = sigmoid(h[j] * w[b + j] + o[b + j]);
        double u = sigmoid(z * w[2 * b + j] + o[2 * b + j]), a = tanh(h[j] * w[3 * b + j] + o[3 * b + j]), th;
        q[j] = h[j]; q[b + j] = z; q[2 * b + j] = cell[j];
        cell[j] = cell[j] * f + i * a; th = tanh(cell[j]);
        q[3 * b + j] = f; q[4 * b + j] = i; q[5 * b + j] = u; q[6 * b + j] = a; q[7 * b + j] = th;
        y[j] = h[j] = u * th;
      }
    }
    for (int j = 0; j < b; j++) {
      double e = y[j] * extra[b + j] + extra[2 * b + j];
      total += next[j] * e; sum += y[b + j] = exp(e);
    }
    double level = log(sum);
    for (int j = 0; j < b; j++) { total -= next[j] * level; y[b + j] /= sum; }
  }
  total = -total / ((c - 1) * b);
  if (!g) return total;
  double seed = -1.0 / ((c - 1) * b), *gx = g + 8 * l * b, *hb = now; /* `now` becomes the cotangents of h and cell */
  memset(g, 0, sizeof(double) * (8 * l + 3) * b); memset(hb, 0, sizeof(double) * 2 * l * b);
  for (int t = c - 2; t >= 0; t--) {
    const double *kept = memory + (size_t)step * t, *y = kept + L, *x = text + (size_t)t * b, *next = x + b;
    double ones = 0;
    for (int j = 0; j < b; j++) ones += next[j];
    for (int j = 0; j < b; j++) {
      double eb = seed * (next[j] - ones * y[b + j]);
      gx[b + j] += eb * y[j]; gx[2 * b + j] += eb; zb[j] = eb * extra[b + j];
    }
    for (int k = l - 1; k >= 0; k--) {
      const double *w = main_ + 8 * k * b, *q = kept + 8 * k * b;
      double *gw = g + 8 * k * b, *go = gw + 4 * b, *h = hb + 2 * k * b, *cell = h + b;
      for (int j = 0; j < b; j++) {
        double f = q[3 * b + j], i = q[4 * b + j], u = q[5 * b + j], a = q[6 * b + j], th = q[7 * b + j];
        double out = h[j] + zb[j], cb = cell[j] + out * u * (1 - th * th), ub = out * th * u * (1 - u);
        double fb = cb * q[2 * b + j] * f * (1 - f), ib = cb * a * i * (1 - i), ab = cb * i * (1 - a * a);
        cell[j] = cb * f;
        gw[j] += fb * q[b + j]; go[j] += fb; gw[b + j] += ib * q[j]; go[b + j] += ib;
        gw[2 * b + j] += ub * q[b + j]; go[2 * b + j] += ub; gw[3 * b + j] += ab * q[j]; go[3 * b + j] += ab;
        h[j] = ib * w[b + j] + ab * w[3 * b + j]; zb[j] = fb * w[j] + ub * w[2 * b + j];
      }
    }
    for (int j = 0; j < b; j++) gx[j] += zb[j] * x[j];
  }
  return total;
}
