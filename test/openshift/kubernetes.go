package openshift

import (
	"errors"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
)

// kubernetes has the versions that API servers and kubelets report, byte by byte, in the order of the releases with
// which they begin. Those of 4.14 to 4.16 have a hash. The versions were read from output of clusters in public
// repositories, that of 5.0.0 from the pull request 2776 of openshift/kubernetes.
var kubernetes = []struct{ release, version string }{
	{"4.14.0", "v1.27.6+b49f9d1"},
	{"4.14.11", "v1.27.11+ec42b99"},
	{"4.15.0", "v1.28.9+2f7b992"},
	{"4.15.59", "v1.28.15+d227d65"},
	{"4.16.0", "v1.29.6+aba1e8d"},
	{"4.16.11", "v1.29.8+f10c92d"},
	{"4.17.0", "v1.30.5"},
	{"4.17.30", "v1.30.12"},
	{"4.18.0", "v1.31.2"},
	{"4.19.0", "v1.32.5"},
	{"4.19.10", "v1.32.7"}, // these of 4.19.10, 4.19.20 and 4.20.10 are examples
	{"4.19.20", "v1.32.8"},
	{"4.20.0", "v1.33.5"},
	{"4.20.10", "v1.33.6"},
	{"4.21.0", "v1.34.2"},
	{"4.21.7", "v1.34.5"},
	{"4.21.18", "v1.34.8"},
	{"4.22.0", "v1.35.6"},
	// No cluster with 4.23 was seen. Its patches may be newer than those of 5.0, which has the same minor version.
	{"4.23.0", "v1.36.5"},
	{"5.0.0", "v1.36.4"},
	// No cluster with 5.1 was seen either. No rule predicts its minor version.
	{"5.1.0", "v1.37.1"},
}

var errUnknownRelease = errors.New("no version of Kubernetes is known for the release")

// KubernetesVersion returns the version (v1.29.6+aba1e8d) that API servers and kubelets of a release report. Several
// releases have the same version.
func KubernetesVersion(release string) (string, error) {
	wanted, err := semver.Parse(strings.TrimPrefix(release, "v"))
	if err != nil {
		return "", fmt.Errorf("cannot read release %q: %w", release, err)
	}
	wanted.Pre, wanted.Build = nil, nil // a candidate has the version of its release
	found := ""
	for _, k := range kubernetes {
		from := semver.MustParse(k.release)
		if from.Major == wanted.Major && from.Minor == wanted.Minor && from.LTE(wanted) {
			found = k.version
		}
	}
	if found == "" {
		return "", fmt.Errorf("%w: %s", errUnknownRelease, release)
	}
	return found, nil
}

// StatedKubernetes returns the version of Kubernetes that a release image states: without v, and without hash.
func StatedKubernetes(release string) (string, error) {
	version, err := KubernetesVersion(release)
	if err != nil {
		return "", err
	}
	stated, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), "+")
	return stated, nil
}

// OperandVersions returns the versions in the status of a ClusterOperator. That of the kube-apiserver also has the
// version of Kubernetes, as release images state it.
func OperandVersions(operator, release, kubernetes string) []configv1.OperandVersion {
	versions := []configv1.OperandVersion{{Name: "operator", Version: release}}
	if operator == KubeAPIServer {
		stated, _, _ := strings.Cut(strings.TrimPrefix(kubernetes, "v"), "+")
		versions = append(versions, configv1.OperandVersion{Name: KubeAPIServer, Version: stated})
	}
	return versions
}
