package releaseimage

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/release"
)

// KubernetesVersion returns the version (v1.33.5) of Kubernetes in a release, as its image states it. An empty image stands
// for the image of the release by tag. KubernetesVersion does not block. If the version is not known, unknown is the cause.
// The cause is ErrPending while a registry is queried. The control plane is reconciled when the result may have changed.
func (r *Resolver) KubernetesVersion(ctx context.Context, s *scope.Scope, wanted semver.Version, image string) (version string,
	unknown, err error,
) {
	image = cmp.Or(image, r.taggedImage(s, wanted))
	if missing := missingRegistries(s); missing != "" {
		return "", fmt.Errorf("%w: ConfigMap %s does not exist", release.ErrUnavailable, missing), nil
	}
	registries, err := r.Registries(ctx, s)
	if err != nil {
		return "", nil, err
	}
	credentials, err := r.credentials(ctx, s) // EnsurePullSecret reports a problem of the contents
	if err != nil {
		return "", nil, err
	}
	var retryAfter time.Duration
	if !strings.Contains(image, "@") {
		image, retryAfter, unknown = r.releases.Resolve(image, r.sourcesOf(registries, image), credentials, r.waker(s))
	}
	if unknown == nil {
		version, retryAfter, unknown = r.releases.KubernetesVersion(image, r.sourcesOf(registries, image), credentials, r.waker(s))
	}
	s.Again.In(retryAfter)
	if unknown == nil {
		unknown = release.CheckKubernetes(wanted, version)
	}
	if unknown != nil {
		return "", unknown, nil
	}
	return version, nil, nil
}
