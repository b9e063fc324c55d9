package claims

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/preflight"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Gather finds the BareMetalHosts, in all watched namespaces, that show that a server is in use. The
// server is that of the Machine's host, or of a host that CAPM3 may give to the Machine.
func (c *Checker) Gather(ctx context.Context, f *facts.Facts) error {
	var hosts []*metal3.Host
	switch {
	case f.Deleting() || f.IsFinished() || f.ApprovedAgent() != nil:
	case f.Host != nil || f.NeedsHost() && !f.DataHandedOut():
		hosts = preflight.Candidates(f)
	}
	if f.Host != nil && len(hosts) > 0 {
		c.servers.Begin(client.ObjectKeyFromObject(f.Config), metal3.ServerKeys(f.Host)...)
	} else {
		c.servers.End(client.ObjectKeyFromObject(f.Config))
	}
	if err := c.claimants(ctx, f, hosts); err != nil || f.Host != nil || len(f.Claimants) == 0 {
		return err
	}
	// A pool may have thousands of hosts, so that only changes of the claimed hosts wake this config. A claim may
	// have ended before the wait was recorded, so that the claimants are read once more.
	hosts = slices.DeleteFunc(hosts, func(host *metal3.Host) bool { return len(f.Claimants[host.Name]) == 0 })
	var keys []string
	for _, host := range hosts {
		keys = append(keys, metal3.ServerKeys(host)...)
	}
	c.servers.Begin(client.ObjectKeyFromObject(f.Config), keys...)
	return c.claimants(ctx, f, hosts)
}

// claimants finds the claimants of the hosts, sorted by namespace and name.
func (c *Checker) claimants(ctx context.Context, f *facts.Facts, hosts []*metal3.Host) error {
	f.Claimants = map[string][]*metal3.Host{}
	for _, host := range hosts {
		for _, key := range metal3.ServerKeys(host) {
			list := &metal3.HostList{}
			if err := c.client.List(ctx, list, client.MatchingFields{informer.HostByServer: key}, client.UnsafeDisableDeepCopy); err != nil {
				return fmt.Errorf("cannot look for BareMetalHosts of the same server: %w", err)
			}
			for i := range list.Items {
				if other := &list.Items[i]; other.Name != host.Name || other.Namespace != host.Namespace {
					f.Claimants[host.Name] = append(f.Claimants[host.Name], other)
				}
			}
		}
		slices.SortFunc(f.Claimants[host.Name], func(a, b *metal3.Host) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
		f.Claimants[host.Name] = slices.CompactFunc(f.Claimants[host.Name],
			func(a, b *metal3.Host) bool { return a.Namespace == b.Namespace && a.Name == b.Name })
	}
	return nil
}
