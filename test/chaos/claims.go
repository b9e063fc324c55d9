package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

const (
	// foreignNamespace is the namespace of copies of BareMetalHosts.
	foreignNamespace = "foreign"
	// How long a copy claims a server: longer than a cache may be outdated at an approval.
	shortestClaim, longestClaim = 25 * time.Second, 40 * time.Second
	// claimSlack is how long a claim has to exist before an approval violates it: watches may be delayed by
	// seconds.
	claimSlack = 15 * time.Second
)

// tenure is the time in which an object showed that a server, or the Agent on it, is its own. A zero end: it
// still does.
type tenure struct {
	claimant string
	from, to time.Time
}

// foreignClaims names the objects that claimed a server when its Agent was approved, except for those of the
// Machine. It returns "" if none did.
func foreignClaims(a approval, own []string, claims []tenure) string {
	var claimants []string
	for _, c := range claims {
		if !slices.Contains(own, c.claimant) && c.from.Add(claimSlack).Before(a.at) && (c.to.IsZero() || c.to.After(a.at.Add(slack))) {
			claimants = append(claimants, c.claimant)
		}
	}
	if len(claimants) == 0 {
		return ""
	}
	slices.Sort(claimants)
	return fmt.Sprintf("Agent %s was approved as the host of Machine %s while its server was claimed by %s", a.agent,
		a.machine, strings.Join(slices.Compact(claimants), ", "))
}

// ledger records claims, by their subject.
type ledger map[string][]tenure

// record records whether a claim exists.
func (l ledger) record(about, claimant string, exists bool, now time.Time) {
	claims := l[about]
	open := slices.IndexFunc(claims, func(c tenure) bool { return c.claimant == claimant && c.to.IsZero() })
	switch {
	case exists && open < 0:
		l[about] = append(claims, tenure{claimant: claimant, from: now})
	case !exists && open >= 0:
		claims[open].to = now
	}
}

// of returns the claims on any of the subjects.
func (l ledger) of(abouts []string) []tenure {
	var claims []tenure
	for _, about := range abouts {
		claims = append(claims, l[about]...)
	}
	return claims
}

func claimantOfHost(key types.NamespacedName) string { return "BareMetalHost " + key.String() }
func claimantOfConfig(key types.NamespacedName) string {
	return "OpenshiftAssistedConfig " + key.String()
}
func aboutAgent(key types.NamespacedName) string { return "agent " + key.String() }

// aboutServer returns the subjects that BareMetalHosts of one server have in common.
func aboutServer(host *metal3api.BareMetalHost) []string {
	var abouts []string
	if mac := strings.ToLower(host.Spec.BootMACAddress); mac != "" {
		abouts = append(abouts, "mac "+mac)
	}
	if address := host.Spec.BMC.Address; address != "" {
		abouts = append(abouts, "bmc "+address)
	}
	return abouts
}

// claimsServer reports whether a BareMetalHost shows that its server is in use.
func claimsServer(host *metal3api.BareMetalHost) bool {
	_, detached := host.Annotations[metal3api.DetachedAnnotation]
	state := host.Status.Provisioning.State
	return detached || host.Spec.ConsumerRef != nil || host.Spec.ExternallyProvisioned ||
		slices.Contains([]metal3api.ProvisioningState{
			metal3api.StateProvisioning, metal3api.StateProvisioned,
			metal3api.StateExternallyProvisioned, metal3api.StateDeprovisioning,
		}, state)
}

// recordClaims records the claims of a BareMetalHost. The caller holds the lock.
func (f *follower) recordClaims(host *metal3api.BareMetalHost, gone bool) {
	key := client.ObjectKeyFromObject(host)
	abouts := aboutServer(host)
	f.servers[key] = abouts
	for _, about := range abouts {
		f.claims.record(about, claimantOfHost(key), !gone && claimsServer(host), time.Now())
	}
}

// recordAgentRef records that a config has the Agent of an installed host. A config that is being deleted releases
// its host. The caller holds the lock.
func (f *follower) recordAgentRef(config *bootstrapv1.OpenshiftAssistedConfig, gone bool) {
	if config.Status.AgentRef == nil {
		return
	}
	key := client.ObjectKeyFromObject(config)
	installed := meta.IsStatusConditionTrue(config.Status.Conditions, bootstrapv1.HostInstalledCondition)
	about := aboutAgent(types.NamespacedName{Namespace: config.Namespace, Name: config.Status.AgentRef.Name})
	f.claims.record(about, claimantOfConfig(key), installed && !gone && config.DeletionTimestamp.IsZero(), time.Now())
}

// judgeClaims compares an approval with the claims of other objects. The caller holds the lock.
func (f *follower) judgeClaims(a approval, host types.NamespacedName) {
	f.checked[claimRule]++
	own := []string{claimantOfHost(host), claimantOfConfig(a.machine)}
	if finding := foreignClaims(a, own, f.claims.of(append([]string{aboutAgent(a.agent)}, f.servers[host]...))); finding != "" {
		f.report(claimRule, finding)
	}
}

// claimServer acts as a client that copies the BareMetalHost of a cluster for a server in use, and deletes the
// copy after a while.
func (r *round) claimServer(ctx context.Context, dice *rand.Rand) (bool, error) {
	t := chosen(dice, r.activeJourneys())
	if t == nil {
		return false, nil
	}
	list := &metal3api.BareMetalHostList{}
	if err := r.lab.Client().List(ctx, list, client.InNamespace((*t).namespace)); err != nil {
		return false, err
	}
	host := chosen(dice, list.Items)
	if host == nil {
		return false, nil
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: foreignNamespace}}
	if err := r.lab.Client().Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
		return false, err
	}
	copied := &metal3api.BareMetalHost{ObjectMeta: metav1.ObjectMeta{
		Namespace: foreignNamespace, Name: "copy-" + strconv.FormatUint(dice.Uint64(), 36),
		Annotations: map[string]string{metal3api.DetachedAnnotation: "chaos"},
	}}
	copied.Spec.BootMACAddress, copied.Spec.BMC, copied.Spec.ExternallyProvisioned = host.Spec.BootMACAddress, host.Spec.BMC, true
	if err := r.lab.Client().Create(ctx, copied); err != nil {
		return false, err
	}
	wait(ctx, between(dice, shortestClaim, longestClaim))
	return true, client.IgnoreNotFound(r.lab.Client().Delete(context.WithoutCancel(ctx), copied))
}
