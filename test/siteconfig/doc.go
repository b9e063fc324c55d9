// Package siteconfig renders ClusterInstances as the siteconfig operator does: it has the fields of ClusterInstance by
// the names that templates know them by, and the functions and variables that the operator gives to templates. Which
// they are was read in stolostron/siteconfig (August 2026).
package siteconfig
