set encoding utf8
set terminal pngcairo noenhanced size 1200,720
set output 'overload-1-5-p99.png'
set title 'The normal load''s p99 before, during and after 1.5 × capacity'
set xlabel 'time (s)'
set ylabel 'p99 latency (ms)'
set xrange [0:*]
set logscale y
set grid
set samples 200
set key above
plot 'overload-1-5-p99-worker.dat' using 1:2 with lines linecolor rgb '#d55e00' title 'Regent worker', \
     'overload-1-5-p99-classic.dat' using 1:2 with lines linecolor rgb '#0072b2' title 'Regent classic', \
     3e3 with lines linecolor rgb '#59636e' dashtype 3 title '3 s'
