// Package helm tests the Helm chart that `make release` writes, with the real Helm. The rendered objects are compared
// with the objects that clusterctl installs. Each value is followed to its place. The chart is installed, upgraded and
// uninstalled on a management cluster. There the managers run with the rights and arguments of the chart.
package helm
