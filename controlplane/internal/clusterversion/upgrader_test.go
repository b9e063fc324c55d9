package clusterversion

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/upgrade"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/release"
)

// contents is the result of reading a release image.
type contents struct {
	version string
	unknown error
	queries int
}

func (c *contents) KubernetesVersion(context.Context, *scope.Scope, semver.Version, string) (version string, unknown, err error) {
	c.queries++
	return c.version, c.unknown, nil
}

// A registry that fails once must not cause an upgrade to another version than that of the topology. One that never
// answers must not prevent upgrades.
func TestSpecIsAssumedToBeCorrectAfterAWhile(t *testing.T) {
	g, clk, image := NewWithT(t), clocktesting.NewFakeClock(sample.Noon), &contents{unknown: release.ErrPending}
	u := NewUpgrader(nil, nil, nil, image, nil, nil, clk)
	known := func(version string) upgrade.Kubernetes {
		f := sample.Facts(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.Version = version })
		s := scope.New(f)
		found, err := u.kubernetesOf(t.Context(), s, "registry/release@sha256:1")
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	g.Expect(known("")).To(Equal(upgrade.Kubernetes{}))
	g.Expect(image.queries).To(BeZero(), "without spec.version the version does not matter")
	g.Expect(known("v1.33.5")).To(Equal(upgrade.Kubernetes{Pending: true}))

	image.unknown = errors.New("no route")
	g.Expect(known("v1.33.5")).To(Equal(upgrade.Kubernetes{Pending: true, Unknown: "no route"}))
	clk.Step(unreadPeriod - time.Second)
	g.Expect(known("v1.33.5")).To(Equal(upgrade.Kubernetes{Pending: true, Unknown: "no route"}))
	clk.Step(time.Second)
	g.Expect(known("v1.33.5")).To(Equal(upgrade.Kubernetes{Unknown: "no route"}))

	image.version, image.unknown = "v1.33.5", nil
	g.Expect(known("v1.33.5")).To(Equal(upgrade.Kubernetes{Version: "v1.33.5"}))
	image.unknown = errors.New("no route")
	g.Expect(known("v1.33.5").Pending).To(BeTrue(), "the failure is another one")

	image.unknown = release.ErrNoVersion
	g.Expect(known("v1.33.5").Pending).To(BeFalse(), "the image does not change")
}
