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
	// foreignNamespace holds BareMetalHosts that are copies of those of clusters.
	foreignNamespace = "foreign"
	// How long a copy claims a server: longer than an approval may go by an old cache.
	shortestClaim, longestClaim = 25 * time.Second, 40 * time.Second
	// claimSlack is how long a claim exists before an approval counts as one against it: watches stall for seconds.
	claimSlack = 15 * time.Second
)

// tenure is the time in which an object showed that a server, or the Agent on it, is its own. An end of zero is still to come.
type tenure struct {
	holder   string
	from, to time.Time
}

// contested names the objects that claimed a server when its Agent was approved, other than those of the Machine; it is
// empty when none did.
func contested(a approval, own []string, claims []tenure) string {
	var holders []string
	for _, c := range claims {
		if !slices.Contains(own, c.holder) && c.from.Add(claimSlack).Before(a.at) && (c.to.IsZero() || c.to.After(a.at.Add(slack))) {
			holders = append(holders, c.holder)
		}
	}
	if len(holders) == 0 {
		return ""
	}
	slices.Sort(holders)
	return fmt.Sprintf("Agent %s was approved as the host of Machine %s while its server was claimed by %s", a.agent,
		a.machine, strings.Join(slices.Compact(holders), ", "))
}

// ledger is what was seen of claims, by what they are about.
type ledger map[string][]tenure

// note writes down that a claim exists, or does not.
func (l ledger) note(about, holder string, exists bool, now time.Time) {
	claims := l[about]
	open := slices.IndexFunc(claims, func(c tenure) bool { return c.holder == holder && c.to.IsZero() })
	switch {
	case exists && open < 0:
		l[about] = append(claims, tenure{holder: holder, from: now})
	case !exists && open >= 0:
		claims[open].to = now
	}
}

// of returns the claims on some of what they may be about.
func (l ledger) of(abouts []string) []tenure {
	var claims []tenure
	for _, about := range abouts {
		claims = append(claims, l[about]...)
	}
	return claims
}

func holderOfHost(key types.NamespacedName) string { return "BareMetalHost " + key.String() }
func holderOfConfig(key types.NamespacedName) string {
	return "OpenshiftAssistedConfig " + key.String()
}
func aboutAgent(key types.NamespacedName) string { return "agent " + key.String() }

// aboutServer is what BareMetalHosts of one server have in common.
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

// seeClaims writes down what a BareMetalHost claims. The caller holds the lock.
func (f *follower) seeClaims(host *metal3api.BareMetalHost, gone bool) {
	key := client.ObjectKeyFromObject(host)
	abouts := aboutServer(host)
	f.servers[key] = abouts
	for _, about := range abouts {
		f.claims.note(about, holderOfHost(key), !gone && claimsServer(host), time.Now())
	}
}

// seeRecord writes down that a config recorded the Agent of a host that is installed. One that is being deleted gives
// its host up. The caller holds the lock.
func (f *follower) seeRecord(config *bootstrapv1.OpenshiftAssistedConfig, gone bool) {
	if config.Status.AgentRef == nil {
		return
	}
	key := client.ObjectKeyFromObject(config)
	installed := meta.IsStatusConditionTrue(config.Status.Conditions, bootstrapv1.HostInstalledCondition)
	about := aboutAgent(types.NamespacedName{Namespace: config.Namespace, Name: config.Status.AgentRef.Name})
	f.claims.note(about, holderOfConfig(key), installed && !gone && config.DeletionTimestamp.IsZero(), time.Now())
}

// judgeClaims holds an approval against what others claimed. The caller holds the lock.
func (f *follower) judgeClaims(a approval, host types.NamespacedName) {
	f.checked[claimRule]++
	own := []string{holderOfHost(host), holderOfConfig(a.machine)}
	if told := contested(a, own, f.claims.of(append([]string{aboutAgent(a.agent)}, f.servers[host]...))); told != "" {
		f.report(claimRule, told)
	}
}

// claimServer is another client that copies the BareMetalHost of a cluster, for a server that is in use, and notices after a while.
func (r *round) claimServer(ctx context.Context, dice *rand.Rand) (bool, error) {
	t := chosen(dice, r.travelling())
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
