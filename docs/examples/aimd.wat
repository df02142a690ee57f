;; A congestion control as a plug-in: additive increase, multiplicative decrease (docs/plugins.md). It does what the
;; built-in `newreno` does, except for marks, losses that turn out spurious, and pauses.
(module
  (global $packet (mut i64) (i64.const 0))
  (global $window (mut i64) (i64.const 0))
  (global $threshold (mut i64) (i64.const 0x7fffffffffffffff))
  (global $credit (mut i64) (i64.const 0))
  (global $reduced (mut i64) (i64.const -1))
  (global $factor (mut f64) (f64.const 0.5))

  ;; The parameter `factor`: what a loss multiplies the window by.
  (func (export "set_factor") (param $value f64) (global.set $factor (local.get $value)))
  (func (export "init") (param $packet i64) (param $seed i64) (call $size (local.get $packet)))
  ;; Before the first data, as TCP's options take a part of each segment.
  (func $size (export "on_packet_size") (param $bytes i64)
    (global.set $packet (local.get $bytes))
    (global.set $window (i64.mul (local.get $bytes) (i64.const 10))))
  (func (export "window") (result i64) (global.get $window))

  (func (export "on_ack")
    (param $now i64) (param $acked i64) (param $marked i64) (param $rtt i64) (param $smoothed i64) (param $min i64)
    (param $before i64) (param $in_flight i64) (param $newest_sent i64) (param $delivery i64) (param $flags i32)
    (local $step i64) (local $windows i64)
    ;; Sent before the last reduction, or not limited by the window.
    (if (i32.or (i64.le_s (local.get $newest_sent) (global.get $reduced)) (i32.and (local.get $flags) (i32.const 2)))
      (then (return)))
    ;; Slow start.
    (local.set $step (call $min (local.get $acked)
      (call $max (i64.sub (global.get $threshold) (global.get $window)) (i64.const 0))))
    (global.set $window (i64.add (global.get $window) (local.get $step)))
    (global.set $credit (i64.add (global.get $credit) (i64.sub (local.get $acked) (local.get $step))))
    ;; One packet more for each window.
    (local.set $windows (i64.div_u (global.get $credit) (global.get $window)))
    (global.set $credit (i64.rem_u (global.get $credit) (global.get $window)))
    (global.set $window (i64.add (global.get $window) (i64.mul (local.get $windows) (global.get $packet)))))

  (func (export "on_loss")
    (param $now i64) (param $lost i64) (param $newest_sent i64) (param $in_flight i64) (param $cause i32)
    (local $timeout i32) (local $new i32) (local $left i64)
    (local.set $timeout (i32.eq (local.get $cause) (i32.const 2)))
    (local.set $new (i64.gt_s (local.get $newest_sent) (global.get $reduced)))
    (if (i32.eqz (i32.or (local.get $timeout) (local.get $new))) (then (return)))
    ;; One reduction for each round trip.
    (local.set $left (call $max
      (i64.trunc_f64_s (f64.mul (f64.convert_i64_s (global.get $window)) (global.get $factor)))
      (i64.mul (global.get $packet) (i64.const 2))))
    (if (local.get $new) (then (global.set $threshold
      (select (call $min (local.get $left) (global.get $threshold)) (local.get $left) (local.get $timeout)))))
    (global.set $window (call $min (global.get $window)
      (select (i64.mul (global.get $packet) (i64.const 2)) (local.get $left) (local.get $timeout))))
    (global.set $credit (i64.const 0))
    (global.set $reduced (local.get $now)))

  (func $min (param $a i64) (param $b i64) (result i64)
    (select (local.get $a) (local.get $b) (i64.lt_s (local.get $a) (local.get $b))))
  (func $max (param $a i64) (param $b i64) (result i64)
    (select (local.get $a) (local.get $b) (i64.gt_s (local.get $a) (local.get $b)))))
