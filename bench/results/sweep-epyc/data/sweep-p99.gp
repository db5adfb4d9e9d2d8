set encoding utf8
set terminal pngcairo noenhanced size 1200,720
set output 'sweep-p99.png'
set title 'p99 of the latency over concurrency'
set xlabel 'concurrency'
set ylabel 'p99 latency (ms)'
set xrange [0:*]
set logscale y
set grid
set samples 200
set key above
plot 'sweep-p99-worker.dat' using 1:2 with points pointtype 2 linecolor rgb '#d55e00' title 'Regent worker', \
     'sweep-p99-worker.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#d55e00' notitle, \
     'sweep-p99-classic.dat' using 1:2 with points pointtype 2 linecolor rgb '#0072b2' title 'Regent classic', \
     'sweep-p99-classic.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#0072b2' notitle, \
     'sweep-p99-native.dat' using 1:2 with points pointtype 2 linecolor rgb '#7b3fb0' title 'Regent native', \
     'sweep-p99-native.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#7b3fb0' notitle, \
     'sweep-p99-native-inline.dat' using 1:2 with points pointtype 2 linecolor rgb '#3f51c9' dashtype (10,3,2,3) title 'Regent native, inline', \
     'sweep-p99-native-inline.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#3f51c9' dashtype (10,3,2,3) notitle, \
     'sweep-p99-respond.dat' using 1:2 with points pointtype 2 linecolor rgb '#007f8c' dashtype (10,3,2,3,2,3) title 'Regent without PHP', \
     'sweep-p99-respond.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#007f8c' dashtype (10,3,2,3,2,3) notitle, \
     'sweep-p99-fpm.dat' using 1:2 with points pointtype 2 linecolor rgb '#00865f' title 'nginx + php-fpm', \
     'sweep-p99-fpm.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#00865f' notitle, \
     'sweep-p99-apache.dat' using 1:2 with points pointtype 2 linecolor rgb '#c0508c' title 'Apache + mod_php', \
     'sweep-p99-apache.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#c0508c' notitle, \
     3e3 with lines linecolor rgb '#59636e' dashtype 3 title '3 s'
