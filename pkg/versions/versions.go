// Package versions relates releases of OpenShift and OKD to versions of Kubernetes, and to the names of release images. It
// does not access registries.
package versions

import (
	"errors"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// errNotKubernetes reports a version that no API server and no kubelet reports.
var errNotKubernetes = errors.New("a version of Kubernetes is 1.y.z, such as v1.33.5")

// KubernetesMinor returns the minor version y of Kubernetes 1.y in a release of OpenShift or OKD. It returns false for
// a release without a known rule: 4.23 and 5.0 have the same minor version, so nothing can be extrapolated beyond 5.0.
func KubernetesMinor(release semver.Version) (minor uint64, known bool) {
	switch {
	case release.Major == 4 && release.Minor >= 14 && release.Minor <= 23:
		return release.Minor + 13, true
	case release.Major == 5 && release.Minor == 0:
		return 36, true
	}
	return 0, false
}

// KubeletsReportHash reports whether the kubelets of a release append a hash to their version. The release image does not
// contain the hash.
func KubeletsReportHash(release semver.Version) bool { return release.Major == 4 && release.Minor < 17 }

// ParseKubernetes parses the version that an API server, a kubelet or a release image reports. The leading v is optional.
// Kubelets of 4.14 to 4.16 report a hash (v1.29.6+aba1e8d) that the release image does not have. The result keeps such
// build metadata, which the methods of semver ignore in comparisons.
func ParseKubernetes(version string) (semver.Version, error) {
	v, err := semver.Parse(strings.TrimPrefix(version, "v"))
	if err != nil || v.Major != 1 {
		return semver.Version{}, fmt.Errorf("%q: %w", bound.Value(version), errNotKubernetes)
	}
	return v, nil
}

// SameKubernetes reports whether two versions of Kubernetes are equal without their build metadata. It returns false if
// one of them is no version of Kubernetes.
func SameKubernetes(a, b string) bool {
	v, err := ParseKubernetes(a)
	w, otherErr := ParseKubernetes(b)
	return err == nil && otherErr == nil && v.EQ(w)
}

// AtLeast reports whether a version of Kubernetes is another one, or newer. Build metadata is ignored. It returns false if
// one of them is no version of Kubernetes.
func AtLeast(version, other string) bool {
	v, err := ParseKubernetes(version)
	w, otherErr := ParseKubernetes(other)
	return err == nil && otherErr == nil && v.GTE(w)
}

// Contradict reports whether a release cannot have a version of Kubernetes, because its minor version is known and
// differs.
func Contradict(release, kubernetes semver.Version) bool {
	minor, known := KubernetesMinor(release)
	return known && (kubernetes.Major != 1 || kubernetes.Minor != minor)
}

// IsRelease reports whether a version is a release of OpenShift or OKD, such as v4.20.8, and not a version of
// Kubernetes. It also recognizes a release without patch.
func IsRelease(version string) bool {
	v, err := semver.ParseTolerant(version)
	return err == nil && v.Major >= 4
}
