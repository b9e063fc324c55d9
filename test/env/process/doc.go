// Package process runs programs as processes of their own, in groups that start, stop and vanish together: with their ports,
// their logs and their temporary data, whatever ends the process that started them.
package process
