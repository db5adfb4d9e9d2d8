set encoding utf8
set terminal pngcairo noenhanced size 1200,720
set output 'sweep-misses-3s.png'
set title 'Requests without a right answer within 3 s'
set xlabel 'concurrency'
set ylabel 'misses (%)'
set xrange [0:*]
set yrange [0:*]
set grid
set samples 200
set key above
plot 'sweep-misses-3s-worker.dat' using 1:2 with points pointtype 2 linecolor rgb '#d55e00' title 'Regent worker', \
     'sweep-misses-3s-worker.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#d55e00' notitle, \
     'sweep-misses-3s-classic.dat' using 1:2 with points pointtype 2 linecolor rgb '#0072b2' title 'Regent classic', \
     'sweep-misses-3s-classic.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#0072b2' notitle, \
     'sweep-misses-3s-native.dat' using 1:2 with points pointtype 2 linecolor rgb '#7b3fb0' title 'Regent native', \
     'sweep-misses-3s-native.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#7b3fb0' notitle, \
     'sweep-misses-3s-native-inline.dat' using 1:2 with points pointtype 2 linecolor rgb '#3f51c9' dashtype (10,3,2,3) title 'Regent native, inline', \
     'sweep-misses-3s-native-inline.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#3f51c9' dashtype (10,3,2,3) notitle, \
     'sweep-misses-3s-respond.dat' using 1:2 with points pointtype 2 linecolor rgb '#007f8c' dashtype (10,3,2,3,2,3) title 'Regent without PHP', \
     'sweep-misses-3s-respond.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#007f8c' dashtype (10,3,2,3,2,3) notitle, \
     'sweep-misses-3s-fpm.dat' using 1:2 with points pointtype 2 linecolor rgb '#00865f' title 'nginx + php-fpm', \
     'sweep-misses-3s-fpm.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#00865f' notitle, \
     'sweep-misses-3s-apache.dat' using 1:2 with points pointtype 2 linecolor rgb '#c0508c' title 'Apache + mod_php', \
     'sweep-misses-3s-apache.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#c0508c' notitle
