// Package preflight looks at the names, addresses and credentials of a cluster before its hosts are installed. It
// advises: what is seen from the hub may look otherwise from the site.
package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Inputs are what there is to look at beside the facts.
type Inputs struct {
	*facts.Facts
	// Names are the answers of DNS for [Names].
	Names map[string]facts.Name
	// Others are the control planes of the hub that have one of the [Claims] of this one.
	Others []*controlplanev1.OpenshiftAssistedControlPlane
	// ReleaseImage is the release image; empty when it is not known.
	ReleaseImage string
	// Registries is the configuration of mirrors; nil when there is none.
	Registries *Registries
	// Covered reports whether the pull secret has credentials for a registry, repository or image; nil when there is no
	// pull secret, or it cannot be read.
	Covered func(place string) bool
}

// Result is what was found.
type Result struct {
	// Warnings say what is, or looks, wrong, and what to do.
	Warnings []string
	// Unknown says what cannot be told yet.
	Unknown []string
	// Early: not all names were looked up yet, as after each start of the manager.
	Early bool
}

// Names of a cluster, as OpenShift documents them: that of its API, one of those of its applications, and one that must
// not exist, by which assisted-service recognises a wildcard record (its validation dns-wildcard-not-configured).
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
	result := Result{Early: slices.ContainsFunc(Names(in.Facts), func(name string) bool { return !in.Names[name].Answered })}
	config, domain := &in.ControlPlane.Spec.Config, in.Domain()
	result.leads(in.Names[apiName(domain)], apiName(domain), "apiVIPs", config.APIVIPs)
	result.leads(in.Names[appName(domain)], "*.apps."+domain, "ingressVIPs", config.IngressVIPs)
	switch found := in.Names[wildcardName(domain)]; {
	case !found.Answered || found.Failure != "":
		result.Unknown = append(result.Unknown, "whether there is a wildcard record *."+domain+" cannot be told yet")
	case len(found.Addresses) > 0:
		result.advise("every name below %s leads to %s: OpenShift is not installed with a wildcard record *.%s, replace it by records of api and *.apps", domain, list(found.Addresses), domain)
	}
	result.clashes(in)
	result.registries(in)
	result.changedMirrors(in)
	return result
}

// changedMirrors reports a change of the mirrors that comes too late: once the installation has begun the cluster is not registered again.
func (r *Result) changedMirrors(in *Inputs) {
	if in.Begun && in.Install != nil && in.Registries != nil && assisted.OtherMirrors(in.Install.Annotations[bootstrapv1.MirrorsDigestAnnotation], in.Registries.Digest) {
		r.advise("ConfigMap %s (config.imageRegistryRef) changed after the installation began: the hosts and the cluster keep its former content. Set it back, or change the mirrors in the installed cluster",
			in.ControlPlane.Spec.Config.ImageRegistryRef.Name)
	}
}

func (r *Result) advise(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// leads compares where a name leads with the addresses that the cluster is to have; it has none that are known
// beforehand when it has no VIPs.
func (r *Result) leads(found facts.Name, name, field string, vips []string) {
	wanted := addresses(vips)
	astray := slices.DeleteFunc(slices.Clone(found.Addresses), wanted.Has)
	switch {
	case !found.Answered:
		r.Unknown = append(r.Unknown, name+" is being looked up")
	case found.Failure != "":
		r.Unknown = append(r.Unknown, fmt.Sprintf("%s cannot be looked up on the hub: %s", name, found.Failure))
	case len(found.Addresses) == 0 && len(wanted) == 0:
		r.advise("%s does not exist in the hub's DNS: create a record", name)
	case len(found.Addresses) == 0:
		r.advise("%s does not exist in the hub's DNS: create a record for %s (config.%s)", name, bound.List(vips), field)
	case len(wanted) > 0 && len(astray) > 0:
		r.advise("%s leads to %s, not to config.%s (%s)", name, list(astray), field, bound.List(vips))
	}
}

// clashes looks for other clusters of the hub with the same name or addresses.
func (r *Result) clashes(in *Inputs) {
	var domains, addresses others
	vips, shared := vipsOf(in.ControlPlane), sets.New[netip.Addr]()
	for _, other := range in.Others {
		if other.Namespace == in.ControlPlane.Namespace && other.Name == in.ControlPlane.Name || !other.DeletionTimestamp.IsZero() {
			continue
		}
		if (&facts.Facts{ControlPlane: other}).Domain() == in.Domain() {
			domains.add(in.ControlPlane, other)
		}
		if same := vips.Intersection(vipsOf(other)); len(same) > 0 {
			addresses.add(in.ControlPlane, other)
			shared = shared.Union(same)
		}
	}
	if domains.any() {
		r.advise("the domain %s is also that of %s: choose another config.clusterName or config.baseDomain", in.Domain(), domains)
	}
	if addresses.any() {
		r.advise("of the VIPs %s are also those of %s: each cluster needs addresses of its own in a network", list(sorted(shared)), addresses)
	}
}

// Claims are what no two clusters can have: the domain and the VIPs of a control plane, in one notation.
func Claims(cp *controlplanev1.OpenshiftAssistedControlPlane) []string {
	claims := []string{"domain " + (&facts.Facts{ControlPlane: cp}).Domain()}
	for _, vip := range sorted(vipsOf(cp)) {
		claims = append(claims, "VIP "+vip.String())
	}
	return claims
}

// others are control planes, by name where they are in the same namespace: what is in other namespaces may be somebody else's business.
type others struct {
	named     []string
	elsewhere int
}

func (o *others) add(to, other *controlplanev1.OpenshiftAssistedControlPlane) {
	if other.Namespace == to.Namespace {
		o.named = append(o.named, other.Name)
	} else {
		o.elsewhere++
	}
}

func (o *others) any() bool { return len(o.named) > 0 || o.elsewhere > 0 }

// String says the same whatever order they were added in.
func (o others) String() string {
	slices.Sort(o.named)
	var parts []string
	if len(o.named) > 0 {
		parts = append(parts, "control plane "+bound.List(o.named))
	}
	if o.elsewhere > 0 {
		parts = append(parts, fmt.Sprintf("%d in other namespaces", o.elsewhere))
	}
	return strings.Join(parts, " and ")
}

// registries looks at the mirrors, and at what the pull secret is for.
func (r *Result) registries(in *Inputs) {
	if in.Registries != nil && in.Registries.Problem != "" {
		r.advise("%s", in.Registries.Problem)
		return
	}
	if in.Covered == nil {
		if in.ControlPlane.Spec.Config.PullSecretRef != nil {
			r.Unknown = append(r.Unknown, fmt.Sprintf("the pull secret %s cannot be read", in.PullSecretName()))
		}
		return
	}
	if uncovered := slices.DeleteFunc(in.Registries.mirrors(), in.Covered); len(uncovered) > 0 {
		r.advise("the pull secret %s has no credentials for mirrors (%s): add them, unless these need none", in.PullSecretName(), bound.List(uncovered))
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
	return bound.List(texts)
}
