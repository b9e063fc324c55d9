// Package preflight looks at the names, addresses and credentials of a cluster before its hosts are installed. It advises: what is seen from the hub may look otherwise from
// the site.
package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// Inputs are what there is to look at beside the facts.
type Inputs struct {
	*facts.Facts
	// Names are the answers of DNS for [Names].
	Names map[string]facts.Name
	// Others are all control planes of the hub.
	Others []*controlplanev1.OpenshiftAssistedControlPlane
	// ReleaseImage is the release image; empty when it is not known.
	ReleaseImage string
	// Registries is the configuration of mirrors; nil when there is none.
	Registries *Registries
	// Covered tells whether the pull secret has credentials for an image; nil when there is no pull secret, or it cannot be read.
	Covered func(image string) bool
}

// Result is what was found.
type Result struct {
	// Warnings say what is, or looks, wrong, and what to do.
	Warnings []string
	// Unknown says what cannot be told yet.
	Unknown []string
}

// Names of a cluster, as OpenShift documents them: that of its API, one of those of its applications, and one that must not exist, by which assisted-service recognises a wildcard
// record (its validation dns-wildcard-not-configured).
func apiName(domain string) string      { return "api." + domain }
func appName(domain string) string      { return "console-openshift-console.apps." + domain }
func wildcardName(domain string) string { return "validatenowildcarddns." + domain }

// Names are the fully qualified DNS names to ask for.
func Names(f *facts.Facts) []string {
	domain := f.Domain()
	return []string{apiName(domain), appName(domain), wildcardName(domain)}
}

// Check looks at everything.
func Check(in *Inputs) Result {
	var result Result
	config, domain := &in.ControlPlane.Spec.Config, in.Domain()
	result.leads(in.Names[apiName(domain)], apiName(domain), "apiVIPs", config.APIVIPs)
	result.leads(in.Names[appName(domain)], "*.apps."+domain, "ingressVIPs", config.IngressVIPs)
	if found := in.Names[wildcardName(domain)]; len(found.Addresses) > 0 {
		result.advise("every name below %s leads to %s: OpenShift is not installed with a wildcard record *.%s, replace it by records of api and *.apps", domain, list(found.Addresses), domain)
	}
	result.clashes(in)
	result.registries(in)
	return result
}

func (r *Result) advise(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// leads compares where a name leads with the addresses that the cluster is to have; it has none that are known beforehand when it has no VIPs.
func (r *Result) leads(found facts.Name, name, field string, vips []string) {
	wanted := addresses(vips)
	astray := slices.DeleteFunc(slices.Clone(found.Addresses), wanted.Has)
	switch {
	case !found.Asked:
		r.Unknown = append(r.Unknown, name+" is being looked up")
	case found.Failure != "":
		r.Unknown = append(r.Unknown, fmt.Sprintf("%s cannot be looked up on the hub: %s", name, found.Failure))
	case len(found.Addresses) == 0 && len(wanted) == 0:
		r.advise("%s does not exist in the hub's DNS: create a record for the node", name)
	case len(found.Addresses) == 0:
		r.advise("%s does not exist in the hub's DNS: create a record for %s (config.%s)", name, strings.Join(vips, ", "), field)
	case len(wanted) > 0 && len(astray) > 0:
		r.advise("%s leads to %s, not to config.%s (%s)", name, list(astray), field, strings.Join(vips, ", "))
	}
}

// clashes looks for other clusters of the hub with the same name or addresses.
func (r *Result) clashes(in *Inputs) {
	vips := vipsOf(in.ControlPlane)
	for _, other := range in.Others {
		if other.Namespace == in.ControlPlane.Namespace && other.Name == in.ControlPlane.Name || !other.DeletionTimestamp.IsZero() {
			continue
		}
		theirs := &facts.Facts{ControlPlane: other}
		if theirs.Domain() == in.Domain() {
			r.advise("the cluster of control plane %s/%s has the same domain %s: choose another config.clusterName or config.baseDomain", other.Namespace, other.Name, in.Domain())
		}
		if shared := vips.Intersection(vipsOf(other)); len(shared) > 0 {
			r.advise("control plane %s/%s has the same VIP %s: each cluster needs addresses of its own in a network", other.Namespace, other.Name, list(sorted(shared)))
		}
	}
}

// registries looks at the mirrors, and at what the pull secret is for.
func (r *Result) registries(in *Inputs) {
	if in.Registries != nil && in.Registries.Problem != "" {
		r.advise("%s", in.Registries.Problem)
		return
	}
	mirrors := in.Registries.mirrors()
	if in.Covered == nil {
		return
	}
	for _, mirror := range mirrors {
		if !in.Covered(mirror) {
			r.advise("the pull secret %s has no credentials for the mirror %s: add them, unless it needs none", in.PullSecretName(), mirror)
		}
	}
	config := &in.ControlPlane.Spec.Config
	given := config.ReleaseImage != "" || config.ClusterImageSetRef != nil // else its registry was asked with the pull secret, which tells more
	if given && in.ReleaseImage != "" && !in.Covered(in.ReleaseImage) && !in.Registries.mirrored(in.ReleaseImage) {
		r.advise("the pull secret %s has no credentials for the release image %s: add them, unless its registry needs none", in.PullSecretName(), in.ReleaseImage)
	}
}

func vipsOf(cp *controlplanev1.OpenshiftAssistedControlPlane) sets.Set[netip.Addr] {
	return addresses(slices.Concat(cp.Spec.Config.APIVIPs, cp.Spec.Config.IngressVIPs))
}

// addresses reads addresses that were admitted.
func addresses(texts []string) sets.Set[netip.Addr] {
	found := sets.New[netip.Addr]()
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil {
			found.Insert(address.Unmap())
		}
	}
	return found
}

func sorted(of sets.Set[netip.Addr]) []netip.Addr {
	return slices.SortedFunc(slices.Values(of.UnsortedList()), netip.Addr.Compare)
}

func list(addresses []netip.Addr) string {
	texts := make([]string, len(addresses))
	for i, address := range addresses {
		texts[i] = address.String()
	}
	return strings.Join(texts, ", ")
}
