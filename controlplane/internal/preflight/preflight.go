// Package preflight checks the names, addresses and credentials of a cluster before the installation of its
// hosts. Its results are advice, because the view of the site may differ from that of the hub.
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

// Inputs are the facts and the additional inputs of the checks.
type Inputs struct {
	*facts.Facts
	// Names are the DNS results for [Names].
	Names map[string]facts.Name
	// Others are the control planes of the hub with one of the [Claims] of this one.
	Others []*controlplanev1.OpenshiftAssistedControlPlane
	// ReleaseImage is the release image, or "" if it is unknown.
	ReleaseImage string
	// Registries is the configuration of mirrors, or nil.
	Registries *Registries
	// Covered reports whether the pull secret has credentials for a registry, repository or image. It is nil if
	// there is no readable pull secret.
	Covered func(place string) bool
}

// Result holds the results of all checks.
type Result struct {
	// Warnings describe probable errors and the action.
	Warnings []string
	// Unknown describes the checks that are not possible yet.
	Unknown []string
	// Early is true while names are being resolved, for example after a start of the manager.
	Early bool
}

// Names of a cluster, as OpenShift documents them: that of its API, and one of its applications. The third
// must not exist. assisted-service uses it to recognize a wildcard record (validation
// dns-wildcard-not-configured).
func apiName(domain string) string      { return "api." + domain }
func appName(domain string) string      { return "console-openshift-console.apps." + domain }
func wildcardName(domain string) string { return "validatenowildcarddns." + domain }

// Names returns the fully qualified DNS names to resolve.
func Names(f *facts.Facts) []string {
	domain := f.Domain()
	return []string{apiName(domain), appName(domain), wildcardName(domain)}
}

// Check makes all checks.
func Check(in *Inputs) Result {
	result := Result{Early: slices.ContainsFunc(Names(in.Facts), func(name string) bool { return !in.Names[name].Answered })}
	config, domain := &in.ControlPlane.Spec.Config, in.Domain()
	result.checkName(in.Names[apiName(domain)], apiName(domain), "apiVIPs", config.APIVIPs)
	result.checkName(in.Names[appName(domain)], "*.apps."+domain, "ingressVIPs", config.IngressVIPs)
	switch found := in.Names[wildcardName(domain)]; {
	case !found.Answered || found.Failure != "":
		result.Unknown = append(result.Unknown, "the check for a wildcard record *."+domain+" is not possible yet")
	case len(found.Addresses) > 0:
		result.advise("all names below %s resolve to %s. OpenShift cannot be installed with a wildcard record *.%s: replace it by records "+
			"of api and *.apps", domain, list(found.Addresses), domain)
	}
	result.clashes(in)
	result.registries(in)
	result.changedMirrors(in)
	return result
}

// changedMirrors reports a change of the mirrors that comes too late: once the installation has begun the
// cluster is not registered again.
func (r *Result) changedMirrors(in *Inputs) {
	if in.Begun && in.Install != nil && in.Registries != nil &&
		assisted.OtherMirrors(in.Install.Annotations[bootstrapv1.MirrorsDigestAnnotation], in.Registries.Digest) {
		r.advise("ConfigMap %s (config.imageRegistryRef) changed after the installation began: the hosts and the cluster keep its former "+
			"content. Set it back, or change the mirrors in the installed cluster",
			in.ControlPlane.Spec.Config.ImageRegistryRef.Name)
	}
}

func (r *Result) advise(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// checkName compares the resolved addresses of a name with the VIPs of the cluster. Without VIPs the addresses
// are not known in advance.
func (r *Result) checkName(found facts.Name, name, field string, vips []string) {
	wanted := addresses(vips)
	unexpected := slices.DeleteFunc(slices.Clone(found.Addresses), wanted.Has)
	switch {
	case !found.Answered:
		r.Unknown = append(r.Unknown, name+" is being resolved")
	case found.Failure != "":
		r.Unknown = append(r.Unknown, fmt.Sprintf("%s cannot be resolved on the hub: %s", name, found.Failure))
	case len(found.Addresses) == 0 && len(wanted) == 0:
		r.advise("%s does not exist in the hub's DNS: create a record", name)
	case len(found.Addresses) == 0:
		r.advise("%s does not exist in the hub's DNS: create a record for %s (config.%s)", name, bound.List(vips), field)
	case len(wanted) > 0 && len(unexpected) > 0:
		r.advise("%s resolves to %s, not to config.%s (%s)", name, list(unexpected), field, bound.List(vips))
	}
}

// clashes checks for other clusters of the hub with the same name or addresses.
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
		r.advise("the domain %s is already used by %s. Set another config.clusterName or config.baseDomain", in.Domain(), domains)
	}
	if addresses.any() {
		r.advise("the VIPs %s are already used by %s. Each cluster needs its own addresses in a network", list(sorted(shared)), addresses)
	}
}

// Claims returns the domain and the VIPs of a control plane in a unique notation. Two clusters must not share
// any.
func Claims(cp *controlplanev1.OpenshiftAssistedControlPlane) []string {
	claims := []string{"domain " + (&facts.Facts{ControlPlane: cp}).Domain()}
	for _, vip := range sorted(vipsOf(cp)) {
		claims = append(claims, "VIP "+vip.String())
	}
	return claims
}

// others are control planes. Those in the same namespace are named. Others are only counted, because they may
// belong to other tenants.
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

// String does not depend on the order in which the control planes were added.
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

// registries checks the mirrors, and the credentials of the pull secret.
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
		r.advise("the pull secret %s has no credentials for mirrors (%s). Add them, unless the mirrors need none", in.PullSecretName(),
			bound.List(uncovered))
	}
	config := &in.ControlPlane.Spec.Config
	given := config.ReleaseImage != "" || config.ClusterImageSetRef != nil // else the registry was already queried with the pull secret
	if given && in.ReleaseImage != "" && !in.Covered(in.ReleaseImage) && !in.Registries.mirrored(in.ReleaseImage) {
		r.advise("the pull secret %s has no credentials for the release image %s. Add them, unless its registry needs none",
			in.PullSecretName(), in.ReleaseImage)
	}
}

func vipsOf(cp *controlplanev1.OpenshiftAssistedControlPlane) sets.Set[netip.Addr] {
	return addresses(slices.Concat(cp.Spec.Config.APIVIPs, cp.Spec.Config.IngressVIPs))
}

// addresses parses addresses that passed admission.
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
