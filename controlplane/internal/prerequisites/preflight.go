package prerequisites

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/preflight"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/releaseimage"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
)

// Names resolves DNS names. Addresses returns the known addresses, and how long they are valid. It resolves an unknown name
// in the background, and then calls done.
type Names interface {
	Addresses(name string, done func()) (facts.Name, time.Duration)
}

// Preflight checks the names, addresses and credentials of a cluster before its installation.
type Preflight struct {
	client client.Client
	names  Names
	images *releaseimage.Resolver
	// waker returns the function that reconciles a control plane whose DNS name was resolved.
	waker func(*scope.Scope) func()
}

// NewPreflight returns a Preflight.
func NewPreflight(c client.Client, names Names, images *releaseimage.Resolver, waker func(*scope.Scope) func()) *Preflight {
	return &Preflight{client: c, names: names, images: images, waker: waker}
}

// Check checks what would make the installation fail. It blocks no other phase.
func (p *Preflight) Check(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Installed() || s.Cluster == nil {
		return true, nil
	}
	in := &preflight.Inputs{
		Facts: s.Facts, Names: map[string]facts.Name{}, ReleaseImage: cmp.Or(s.Found.ReleaseImage, s.ControlPlane.Status.ReleaseImage),
	}
	for _, wanted := range preflight.Names(s.Facts) {
		answer, left := p.names.Addresses(wanted, p.waker(s))
		in.Names[wanted] = answer
		s.Again.In(left)
	}
	var err error
	if in.Others, err = p.claimants(ctx, s.ControlPlane); err != nil {
		return false, err
	}
	if in.Covered, err = p.images.Covered(ctx, s); err != nil {
		return false, err
	}
	if in.Registries, err = p.images.Registries(ctx, s); err != nil {
		return false, err
	}
	s.Found.Preflight = ptr.To(preflight.Check(in))
	return true, nil
}

// claimants returns the control planes of the hub that have the domain or a VIP of a control plane, including this control
// plane. It lists them by index: a hub has thousands of control planes.
func (p *Preflight) claimants(
	ctx context.Context, cp *controlplanev1.OpenshiftAssistedControlPlane,
) ([]*controlplanev1.OpenshiftAssistedControlPlane, error) {
	found := map[client.ObjectKey]*controlplanev1.OpenshiftAssistedControlPlane{}
	for _, claim := range preflight.Claims(cp) {
		list := &controlplanev1.OpenshiftAssistedControlPlaneList{}
		if err := p.client.List(ctx, list, client.MatchingFields{informer.ClaimField: claim}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("cannot list control planes with %s: %w", claim, err)
		}
		for i := range list.Items {
			found[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
		}
	}
	return slices.Collect(maps.Values(found)), nil
}
