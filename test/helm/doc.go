// Package helm is the Helm chart that `make release` writes, in the hands of the real Helm: what its templates give is
// compared, object by object, with what clusterctl installs; each value is followed to its place; and it is installed,
// upgraded and uninstalled on a management cluster whose managers then run with the rights and arguments that the chart
// gives them.
package helm
